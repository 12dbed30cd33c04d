"""URLs of a site that does not offer the server API."""

from __future__ import annotations

from django.urls import path

from tests.site import views

urlpatterns = [
    path("hello", views.hello),
    path("call/sync-view", views.sync_view),
]
