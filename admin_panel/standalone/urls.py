"""URLs of the standalone panel: `path("", include("realtime.admin_panel.standalone.urls"))`.

Put it before the URLs of Django's admin if those are at "admin/", which would otherwise receive
the requests for admin/auth and admin/api.

URL names: `realtime_panel:<page>`, for example `realtime_panel:overview`, which is the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.urls.resolvers import RoutePattern

from .. import shell
from ..pages import PAGES
from . import api, signin, views
from .panel import HOME, NAMESPACE, panel

app_name = NAMESPACE


class WhileOn(RoutePattern):
    """An empty path that matches while the option `admin` is on.

    Otherwise Django tries the next URLs of the site.
    """

    def match(self, path: str) -> Any:
        """Match as the base class does, if the panel is on."""
        return super().match(path) if signin.is_on() else None


def pages() -> Iterator[URLPattern]:
    """Yield the URLs of the pages and their parts."""
    for page in PAGES:
        for route, name, view in shell.routes(panel, page):
            if name == HOME:
                yield path("", views.for_operators(views.or_first_page(view)), name=name)
            else:
                yield path(page.path + route, views.for_operators(view), name=name)


urlpatterns = [
    URLResolver(
        WhileOn(""),
        [
            path("sign-in/", views.sign_in, name="sign_in"),
            path("sign-out/", views.sign_out, name="sign_out"),
            path("admin/auth", api.auth, name="auth"),
            path("admin/api", api.commands, name="api"),
            *pages(),
        ],
    )
]
