"""The listener's configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ListeningConfig(AppConfig):
    """The listener."""

    name = "tests.site.listening"
    label = "listening"

    def ready(self) -> None:
        """Connect the receivers."""
        from tests.site.listening import receivers

        receivers.connect()
