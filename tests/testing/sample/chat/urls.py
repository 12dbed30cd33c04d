"""URLs of the sample site."""

from __future__ import annotations

from django.urls import path

from chat import views

urlpatterns = [path("rooms/<room>/", views.write)]
