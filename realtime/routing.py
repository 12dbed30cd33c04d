"""URL patterns of the socket transports, for sites that route with Channels themselves.

Most sites need only `realtime.asgi.application`, which includes these.
"""

from __future__ import annotations

from django.urls import path

from realtime.transports.websocket import WebSocketConsumer

websocket_urlpatterns = [path("connection/websocket", WebSocketConsumer.as_asgi())]
