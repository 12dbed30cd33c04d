"""URLs of a site below a path: those of the test site, a page that connects, and the panel."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.urls import include, path

from tests.site.urls import urlpatterns as pages


def page(request: HttpRequest) -> HttpResponse:
    template = Template("{% load realtime %}{% realtime_config %}")
    return HttpResponse(template.render(Context({"request": request})))


urlpatterns = [
    path("page", page),
    path("realtime/", include("realtime.urls")),
    path("panel/", include("admin_panel.standalone.urls")),
    *pages,
]
