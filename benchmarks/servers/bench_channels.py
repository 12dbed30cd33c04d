"""Plain Channels consumers, as its tutorial writes them.

BENCH_LAYER   memory | redis | none: the channel layer.
BENCH_REDIS   URL of the Redis server for `redis`.
BENCH_PREFIX  prefix of this process's keys and channels in Redis.

/sub: in the group, gets its messages. /pub: sends what it receives to the group.
/echo: no layer, answers every message with itself.
"""

from __future__ import annotations

import json
import os
from typing import Any

import django
from django.conf import settings

GROUP = "g"

_EXPIRY = 3600
"""Seconds a message may wait in the layer: longer than a server is ever stopped between turns."""

_LAYERS: dict[str, dict[str, Any]] = {
    "none": {},
    "memory": {
        "default": {
            "BACKEND": "channels.layers.InMemoryChannelLayer",
            "CONFIG": {"expiry": _EXPIRY},
        }
    },
    "redis": {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {
                "hosts": [os.environ.get("BENCH_REDIS", "redis://127.0.0.1:6379")],
                "prefix": os.environ.get("BENCH_PREFIX", "bench"),
                "expiry": _EXPIRY,
            },
        }
    },
}

settings.configure(
    SECRET_KEY="not a secret",
    ALLOWED_HOSTS=["127.0.0.1"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "channels"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CHANNEL_LAYERS=_LAYERS[os.environ.get("BENCH_LAYER", "memory")],
    USE_TZ=True,
)
django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

# channels has no types, hence the ignored bases


class Subscriber(AsyncWebsocketConsumer):  # type: ignore[misc]
    """In the group from the handshake on."""

    async def connect(self) -> None:
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.accept()
        await self.send(text_data="[]")

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def chat_message(self, event: dict[str, Any]) -> None:
        """Deliver one message of the group."""
        await self.send(text_data=json.dumps(event["message"]))


class Publisher(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Sends to the group."""

    async def receive(self, text_data: str = "", bytes_data: bytes | None = None) -> None:
        await self.channel_layer.group_send(
            GROUP, {"type": "chat.message", "message": json.loads(text_data)}
        )


class Echo(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Answers."""

    async def connect(self) -> None:
        await self.accept()
        await self.send(text_data="[]")

    async def receive(self, text_data: str = "", bytes_data: bytes | None = None) -> None:
        await self.send(text_data=text_data)


application = ProtocolTypeRouter(
    {
        "websocket": URLRouter(
            [
                path("sub", Subscriber.as_asgi()),
                path("pub", Publisher.as_asgi()),
                path("echo", Echo.as_asgi()),
            ]
        )
    }
)
