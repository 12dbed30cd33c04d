"""Disconnect codes and advice reach the client under each server, and the connection ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.configurations import BAD_REQUEST, FORCED, SHUTDOWN
from tests.server import Server

ENDS: dict[str, set[tuple[int, str]]] = {
    "daphne": {SHUTDOWN},
    # uvicorn closes sockets itself, before it says that it stops: 1012 is "service restart"
    # in the registry of RFC 6455, and without a reason clients come back
    "uvicorn": {SHUTDOWN, (1012, "")},
    "gunicorn": {SHUTDOWN},
    "gunicorn-asgi": {SHUTDOWN},
    "hypercorn": {SHUTDOWN},
}
"""Server → the ends that its clients may hear of when it stops."""


@pytest.mark.parametrize("kind", ENDS)
async def test_client_learns_why_it_is_closed(
    own_server: Callable[..., Server], connect: Callable[..., Any], unique: str, kind: str
) -> None:
    server = own_server(server=kind)
    bad, forced = [await connect(server, user=unique) for _ in range(2)]
    formats = ("json", "protobuf", "json")
    staying = [await connect(server, user=f"{unique}-b", format_name=name) for name in formats]

    await bad.send_raw("no command")
    assert await bad.closed() == BAD_REQUEST

    await asyncio.to_thread(server.api, "disconnect", user=unique)
    assert await forced.closed() == FORCED
    assert "Traceback" not in server.log

    os.kill(server.pid, signal.SIGTERM)
    assert {await client.closed() for client in staying} <= ENDS[kind]
