"""The Django app: registers system checks, signals and hooks."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured


class RealtimeConfig(AppConfig):
    """The Django app of the service."""

    name = "realtime"
    label = "realtime"
    verbose_name = "Realtime"

    def ready(self) -> None:
        """Register checks and signals, and import the modules `realtime` of the site's apps.

        Raises:
            ImproperlyConfigured: a dependency is not installed.
        """
        from django.utils.module_loading import autodiscover_modules

        try:
            from realtime import checks, logout, logs
            from realtime.config import sources
            from realtime.hooks.registry import registry
        except ModuleNotFoundError as error:
            raise ImproperlyConfigured(
                f"The package {error.name} is missing, which the app realtime needs. Install"
                " django-realtime-messaging again, with its dependencies."
            ) from error

        checks.register()
        logs.install()
        sources.connect_signals()
        if apps.is_installed("django.contrib.auth"):
            logout.connect_signals()
        autodiscover_modules("realtime")
        registry.is_loaded = True
