"""The one URL of the HTTP API: `path("api", include("realtime.api.urls"))`."""

from __future__ import annotations

from django.urls import path

from .views import CommandView

app_name = "realtime_api"
urlpatterns = [path("", CommandView.as_view(), name="commands")]
