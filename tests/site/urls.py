"""URLs of the test site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("api", include("api.urls")),
    path("admin/", admin.site.urls),
]
