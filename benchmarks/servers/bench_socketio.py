"""python-socketio: one room, in which every connection without `role=pub` is."""

from __future__ import annotations

import importlib
from typing import Any

socketio = importlib.import_module("socketio")

HOUR = 3600
"""Seconds between pings: servers stand still while others are measured."""

server = socketio.AsyncServer(async_mode="asgi", ping_interval=HOUR, ping_timeout=HOUR)
application = socketio.ASGIApp(server)


async def connect(sid: str, environ: dict[str, Any]) -> None:
    """Join the room."""
    if "role=pub" not in environ.get("QUERY_STRING", ""):
        await server.enter_room(sid, "g")


async def publish(sid: str, data: Any) -> None:
    """Emit to the room."""
    await server.emit("m", data, room="g")


server.on("connect", connect)
server.on("pub", publish)
