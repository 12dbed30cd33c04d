"""The Django app of the panel."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AdminPanelConfig(AppConfig):
    """Named after its own module: the wheel ships it as `realtime.admin_panel`."""

    name = __name__.rpartition(".")[0]
    label = "realtime_admin"
    verbose_name = _("Realtime")

    def ready(self) -> None:
        """Let `migrate` create a permission for each namespace, and register the system check."""
        from .permissions import create_for_namespaces
        from .publishing.threshold import check_setting

        post_migrate.connect(
            create_for_namespaces, sender=self, dispatch_uid="realtime_admin.permissions"
        )
        checks.register(check_setting)
