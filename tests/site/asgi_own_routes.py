"""A site that has WebSocket routes of its own beside those of the service."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django_application = get_asgi_application()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import URLRouter  # noqa: E402
from django.urls import path  # noqa: E402

import realtime.asgi  # noqa: E402


class Echo(AsyncWebsocketConsumer):
    """Sends every text back; closes with code and reason when told to."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer one frame."""
        if text_data == "close":
            await self.close(code=4321, reason="as you wish")
        else:
            await self.send(text_data=text_data)


application = realtime.asgi.application(
    django_application, websocket=URLRouter([path("echo", Echo.as_asgi())])
)
