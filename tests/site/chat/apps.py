"""The chat's configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class ChatConfig(AppConfig):
    """The chat."""

    name = "tests.site.chat"
    label = "chat"

    def ready(self) -> None:
        """Make the service look again sooner, where a test wants to see it."""
        from realtime.clients import renewals
        from realtime.hooks import login

        # the settings of this site have them
        if interval := settings.TEST_CHECK_INTERVAL:  # type: ignore[misc]
            login.CHECK_INTERVAL = float(interval)
        if retry := settings.TEST_REFRESH_RETRY:  # type: ignore[misc]
            renewals.REFRESH_RETRY = float(retry)
