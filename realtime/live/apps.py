"""The Django app of HTML over channels."""

from __future__ import annotations

from django.core.checks import register

from realtime.config import parts


class LiveConfig(parts.Part):
    """Gives templates the tag `live`, and the site live models."""

    name = "realtime.live"
    label = "realtime_live"
    verbose_name = "Realtime: HTML over channels"

    def ready(self) -> None:
        """Register the checks."""
        super().ready()
        from realtime.live.rows.checks import CHECKS

        for check in CHECKS:
            register(check, "realtime")
