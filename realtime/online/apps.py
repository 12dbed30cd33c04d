"""The Django app that knows who is online."""

from __future__ import annotations

from realtime.config import parts


class OnlineConfig(parts.Part):
    """Has the nodes of this process list their users."""

    name = "realtime.online"
    label = "realtime_online"
    verbose_name = "Realtime: who is online"

    def ready(self) -> None:
        """Install what the service calls."""
        super().ready()
        from realtime.online.app import Online
        from realtime.serving import serving

        serving.online = Online()
