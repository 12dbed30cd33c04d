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

WAYS = {
    "gunicorn": {"server": "gunicorn"},
    "gunicorn with its own worker": {"server": "gunicorn-asgi"},
    "hypercorn": {"server": "hypercorn"},
}
"""Those that other tests do not cover."""


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
async def test_client_learns_why_it_is_closed(
    own_server: Callable[..., Server], connect: Callable[..., Any], unique: str, way: dict[str, str]
) -> None:
    server = own_server(**way)
    bad, forced = [await connect(server, user=unique) for _ in range(2)]
    staying = [await connect(server, user=f"{unique}-{n}") for n in range(3)]

    await bad.send_raw("no command")
    assert await bad.closed() == BAD_REQUEST

    await asyncio.to_thread(server.api, "disconnect", user=unique)
    assert await forced.closed() == FORCED
    assert "Traceback" not in server.log

    os.kill(server.pid, signal.SIGTERM)
    assert [await client.closed() for client in staying] == [SHUTDOWN] * 3
