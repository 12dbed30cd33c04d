"""URLs of the site that listens."""

from __future__ import annotations

from django.urls import include, path

from tests.site.listening import views

urlpatterns = [
    path("api", include("api.urls")),
    path("do/<str:action>", views.do),
]
