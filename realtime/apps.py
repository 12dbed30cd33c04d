"""The Django app: registers the system checks and follows changed settings."""

from __future__ import annotations

from django.apps import AppConfig


class RealtimeConfig(AppConfig):
    """The service."""

    name = "realtime"
    label = "realtime"
    verbose_name = "Realtime"

    def ready(self) -> None:
        """Register what has to be registered, and nothing else."""
        from realtime import checks, conf

        checks.register()
        conf.connect_signals()
