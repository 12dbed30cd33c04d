"""The panel in the Django admin: its section "Realtime".

The default admin site has it, including one that `AdminConfig.default_site` names. For another
`AdminSite` of the project:

    from realtime.admin_panel.admin import register

    register(my_admin_site)

URL names: `admin:realtime_admin_<page>`, for example `admin:realtime_admin_overview`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps.registry import Apps
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.db import models
from django.http import HttpRequest
from django.urls import URLPattern, path

from . import shell
from .operators import Operator, UserOperator
from .pages import PAGES
from .panel import Panel, PanelPage
from .permissions import APP_LABEL

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[models.Model]
else:
    ModelAdmin = admin.ModelAdmin


class AdminPanel(Panel):
    """The panel inside an admin site, whose users are the operators."""

    base_template = "admin_panel/in_admin.html"
    namespace = "admin"
    prefix = f"{APP_LABEL}_"

    def __init__(self, site: AdminSite) -> None:
        super().__init__(PAGES)
        self._site = site

    @property
    def instance(self) -> str:
        """The name of the admin site."""
        return self._site.name

    def operator(self, request: HttpRequest) -> Operator:
        """Return the user who is logged in."""
        return UserOperator(request.user)

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of the admin's own templates."""
        request.current_app = self._site.name
        return self._site.each_context(request)


class PageAdmin(ModelAdmin):
    """One page of the panel in place of the views of a model."""

    page: PanelPage
    panel: Panel

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs of the page, which takes the place of the list."""
        urls = [
            path(route, self.admin_site.admin_view(view), name=name)
            for route, name, view in shell.routes(self.panel, self.page)
        ]
        # the name under which the admin's index links to it
        name = f"{APP_LABEL}_{self.opts.model_name}_changelist"
        return [*urls, path("", urls[0].callback, name=name)]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the admin's index shows the page."""
        return self.page.listed and self.page.allowed(self.panel.operator(request))

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Return whether the user may open the page."""
        return self.page.allowed(self.panel.operator(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: there is no object."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Return False: there is no object."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Return False: there is no object."""
        return False


def register(site: AdminSite) -> None:
    """Add the panel to an admin site."""
    panel = AdminPanel(site)
    for page in PAGES:
        site.register(entry_of(page), PageAdmin, page=page, panel=panel)


def entry_of(page: PanelPage) -> type[models.Model]:
    """Return a model for a page, because the admin's index lists only models.

    It is not in Django's registry of models: it has no table, no content type, no permission
    and no migration.
    """
    options = {
        "apps": Apps(),
        "app_label": APP_LABEL,
        "managed": False,
        "default_permissions": (),
        "verbose_name": page.label,
        "verbose_name_plural": page.label,
    }
    name = page.path.strip("/").capitalize()
    return type(name, (models.Model,), {"__module__": __name__, "Meta": type("Meta", (), options)})


register(admin.site)
