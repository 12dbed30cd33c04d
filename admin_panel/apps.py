"""The Django app of the panel."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core import checks
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from realtime.config import parts

ADMIN = "django.contrib.admin"


class AdminPanelConfig(parts.Part):
    """Named after its own module: the wheel ships it as `realtime.admin_panel`."""

    name = __name__.rpartition(".")[0]
    label = "realtime_admin"
    verbose_name = _("Realtime")

    def import_models(self) -> None:
        """Leave the models out where Django's admin is missing: they need it.

        A check says so.
        """
        if apps.is_installed(ADMIN):
            super().import_models()
        else:
            self.models = apps.all_models[self.label]

    def ready(self) -> None:
        """Let `migrate` create a permission for each namespace, and register the system check."""
        super().ready()
        checks.register(check_admin)
        if not apps.is_installed(ADMIN):
            return
        from .permissions import create_for_namespaces
        from .publishing.threshold import check_setting

        post_migrate.connect(
            create_for_namespaces, sender=self, dispatch_uid="realtime_admin.permissions"
        )
        checks.register(check_setting)


def check_admin(**_arguments: Any) -> list[checks.CheckMessage]:
    """realtime_admin.E002: Django's admin is missing."""
    if apps.is_installed(ADMIN):
        return []
    return [
        checks.Error(
            f"The panel needs {ADMIN} in INSTALLED_APPS.",
            hint="Add it, also for the standalone panel, or remove the panel.",
            id="realtime_admin.E002",
        )
    ]
