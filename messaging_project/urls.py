"""URLs of the ready site."""

from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from messaging_project import demo
from messaging_project.documentation import documentation
from realtime.serving import serving

urlpatterns = [
    # with the option `admin` the panel is at the root; without, its URLs do not match
    path("", include("admin_panel.standalone.urls")),
    path("", demo.root),
    path("demo", demo.page, name="demo"),
    path("demo/token", demo.token, name="demo-token"),
    path("docs/<path:path>", documentation, name="documentation"),
    path("favicon.ico", RedirectView.as_view(url=static("messaging_project/icon.svg"))),
    path("api", include("api.urls")),
    path("admin/", admin.site.urls),
]

_config = serving.readable_config()
if not (
    _config.connection_tokens.jwks_public_endpoint
    or _config.subscription_tokens.jwks_public_endpoint
):  # otherwise another service signs tokens
    urlpatterns.append(path("centrifuge/", include("realtime.urls")))
