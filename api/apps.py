"""The Django app of the HTTP API."""

from __future__ import annotations

from django.apps import AppConfig


class APIConfig(AppConfig):
    """Named after its own module: the wheel ships it as `realtime.api`."""

    name = __name__.rpartition(".")[0]
    label = "realtime_api"
    verbose_name = "Realtime API"
