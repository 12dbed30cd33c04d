"""URLs of the site with private channels: those of the chat, and the views for tokens."""

from __future__ import annotations

from django.urls import include, path

from tests.site.chat.urls import urlpatterns as chat

urlpatterns = [path("centrifuge/", include("realtime.urls")), *chat]
