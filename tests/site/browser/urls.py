"""URLs of the site with the client module: those of the lounge, a page, static files."""

from __future__ import annotations

from django.apps import apps
from django.contrib.staticfiles.views import serve
from django.urls import include, path

from tests.site.browser import live, views
from tests.site.lounge.urls import urlpatterns as lounge

urlpatterns = [
    path("client", views.page),
    path("client/cached", views.cached),
    path("client/token", views.token),
    path("live/page/<str:name>", live.page),
    path("live/write/<str:name>", live.write),
    path("live/library/<str:name>", live.library),
    path("live/report", live.report),
    path("static/<path:path>", serve, {"insecure": True}),
    *lounge,
]
if apps.is_installed("realtime.answers"):
    urlpatterns.append(path("", include("tests.site.answers")))
