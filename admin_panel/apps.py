"""The Django app of the operators' panel."""

from __future__ import annotations

from django.apps import AppConfig


class AdminPanelConfig(AppConfig):
    """Named after its own module: the wheel ships it as `realtime.admin_panel`."""

    name = __name__.rpartition(".")[0]
    label = "realtime_admin"
    verbose_name = "Realtime"
