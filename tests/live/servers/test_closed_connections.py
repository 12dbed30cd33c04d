"""Closed connections leave nothing to the garbage collector, however they end.

The collector of a busy server runs rarely, and what waits for it is memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import websockets

from tests.live.memory_parts import APPLICATION, account
from tests.server import Server

CONNECTIONS = 20
"""Of each kind."""
OWN = 4
"""Objects of the request that asks, and of the one before it."""

SOCKET = "/connection/websocket"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
POST = "POST /connection/sockjs/0/s/xhr_send HTTP/1.1\r\nHost: localhost\r\n"

BROKEN = {
    "handshake without a version": f"GET {SOCKET} HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n",
    "half a head": "GET / HT",
    "half a body": f"{POST}Content-Length: 10\r\n\r\nabc",
    "half a chunk": f"{POST}Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
    "a body that is refused": "POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
}

UPSTREAM = "uvicorn", "handshake without a version"
"""websockets keeps the exception with which it refuses, before the service has a part in it."""


async def end_socket(server: Server, way: str) -> None:
    url = f"ws://127.0.0.1:{server.port}{SOCKET}"
    async with websockets.connect(url, ping_interval=None) as socket:
        await socket.send('{"id":1}')
        await socket.recv()
        if way == "aborted":
            socket.transport.abort()
        elif way == "refused":
            await socket.send("no command")
            with contextlib.suppress(websockets.ConnectionClosed):
                await socket.recv()


async def refuse_handshake(server: Server) -> None:
    with contextlib.suppress(websockets.InvalidStatus):
        async with websockets.connect(f"ws://127.0.0.1:{server.port}/nowhere"):
            pass


async def send_and_go(server: Server, data: str) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data.encode())
    await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize("name", ["daphne", "uvicorn"])
async def test_closed_connections_are_freed_without_the_garbage_collector(
    serve: Callable[..., Server], name: str
) -> None:
    server = serve(server=name, application=APPLICATION, client_insecure=True)
    await account(server, "/left")  # collects what the start has left
    await account(server, "/kept")

    for _ in range(CONNECTIONS):
        for way in ("closed", "aborted", "refused"):
            await end_socket(server, way)
        await refuse_handshake(server)
        for kind, data in BROKEN.items():
            if (name, kind) != UPSTREAM:
                await send_and_go(server, data)

    deadline = asyncio.get_running_loop().time() + 20
    while sum((kept := await account(server, "/kept")).values()) > OWN:
        assert asyncio.get_running_loop().time() < deadline, kept
        await asyncio.sleep(0.2)
