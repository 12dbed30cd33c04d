"""The Django app of durable publications."""

from __future__ import annotations

from realtime.config import parts


class PendingConfig(parts.Part):
    """Gives the service of this process a place to keep durable publications."""

    name = "realtime.pending"
    label = "realtime_pending"
    verbose_name = "Realtime: pending publications"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Install what keeps and relays rows."""
        super().ready()
        from realtime.pending.rows import Rows
        from realtime.serving import serving

        serving.pending = serving.row_writer = Rows(serving)
