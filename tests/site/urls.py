"""URLs of the test site."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

from tests.site import pages, views

urlpatterns = [
    path("api", include("api.urls")),
    path("admin/", admin.site.urls),
    path("hello", views.hello),
    path("health/", include("realtime.monitoring.urls")),
    path("pages/race", pages.race),
    path("pages/tag", pages.tag),
    path("pages/writer", pages.writer),
    path("pages/published", pages.published),
    path("libraries/", include("tests.site.libraries")),
    path("call/sync-view", views.sync_view),
    path("call/thread", views.thread),
    path("call/sync-to-async", views.sync_to_async_to_sync),
    path("call/forked", views.forked),
    path("call/async-view", views.async_view),
    path("call/task", views.task),
    path("call/async-to-sync", views.async_from_sync),
    path("call/other-loop", views.other_loop),
    path("call/sync-on-the-loop", views.sync_on_the_loop),
    path("call/sync-on-another-loop", views.sync_on_another_loop),
]
if apps.is_installed("realtime.answers"):
    urlpatterns.append(path("", include("tests.site.answers")))
    urlpatterns.append(path("", include("tests.site.scripts")))
    urlpatterns.append(path("", include("tests.site.agents")))
