"""The Django app that knows who is online."""

from __future__ import annotations

from django.apps import AppConfig


class OnlineConfig(AppConfig):
    """Has the nodes of this process list their users."""

    name = "realtime.online"
    label = "realtime_online"
    verbose_name = "Realtime: who is online"

    def ready(self) -> None:
        """Install what the service calls."""
        from realtime.online.app import Online
        from realtime.serving import serving

        serving.online = Online()
