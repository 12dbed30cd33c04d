"""Apps of this package that need the app `realtime`, and the check that it is installed."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.checks import CheckMessage

from realtime.config.channel_options import ChannelOptions

namespaces: dict[str, ChannelOptions] = {}
"""Those that parts bring with them. The ones of the site count where they have the same name."""


class Part(AppConfig):
    """An app of this package besides `realtime`."""

    def ready(self) -> None:
        """Register the check, which the missing app cannot register."""
        checks.register(check_service, "realtime")


def check_service(**_: Any) -> list[CheckMessage]:
    """E061: an app of this package, such as `realtime.api`, is installed without `realtime`."""
    if apps.is_installed("realtime"):
        return []
    names = [config.name for config in apps.get_app_configs() if isinstance(config, Part)]
    return [
        checks.Error(
            f"{' and '.join(names)} cannot work without the service: no hook is loaded, and no"
            " client can connect.",
            hint='Add "realtime" to INSTALLED_APPS.',
            id="realtime.E061",
        )
    ]
