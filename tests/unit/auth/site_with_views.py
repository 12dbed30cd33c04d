"""A URLconf with the views for tokens."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("a/site/centrifuge/", include("realtime.urls"))]
