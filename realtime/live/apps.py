"""The Django app of HTML over channels."""

from __future__ import annotations

from django.apps import AppConfig


class LiveConfig(AppConfig):
    """Gives templates the tag `live`, and the site live models."""

    name = "realtime.live"
    label = "realtime_live"
    verbose_name = "Realtime: HTML over channels"
