"""The server API while the process is being stopped."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from tests.conftest import new_word
from tests.live.api_client import BOTH, OPTIONS, connection, line, send, start
from tests.live.configurations import Connect, Serve
from tests.redis_server import RedisServer
from tests.server import Server

TIMEOUT = 10.0
CLOSE_FRAME = 0x88

HANDSHAKE = (
    "GET /connection/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def silent_client(server: Server) -> socket.socket:
    """A WebSocket whose peer answers nothing, so that stopping takes its time."""
    host, _, port = server.address.removeprefix("http://").partition(":")
    peer = socket.create_connection((host, int(port)), TIMEOUT)
    peer.sendall(HANDSHAKE.encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += peer.recv(4096)
    assert received.startswith(b"HTTP/1.1 101 ")
    return peer


@pytest.mark.parametrize("shell", BOTH)
def test_stopping_server_publishes_or_answers_503(
    own_server: Serve, redis_server: RedisServer, shell: str
) -> None:
    """It takes requests until its clients are closed, and may end in that moment."""
    options = {**OPTIONS, "redis_url": redis_server.url, "redis_prefix": new_word()}
    server, other = (start(own_server, shell, **options) for _ in range(2))
    with connection(server) as opened, silent_client(server) as peer:
        assert send(opened, line("publish", {"channel": "kept:a", "data": 1})).status == 200
        os.kill(server.pid, signal.SIGTERM)
        assert peer.recv(1)[0] == CLOSE_FRAME  # stopping has begun

        answer = send(opened, line("publish", {"channel": "kept:a", "data": 2}))

    with connection(other) as opened:
        [reply] = send(opened, line("history", {"channel": "kept:a"})).replies
    published = [each["data"] for each in reply["result"]["publications"]]
    assert (answer.status, published) in [(200, [1, 2]), (503, [1])]


@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
async def test_server_stops_while_api_connections_are_open(
    own_server: Serve, connect: Connect, server_name: str
) -> None:
    server = own_server(server=server_name, **OPTIONS)
    with connection(server) as opened:
        assert send(opened, line("channels")).status == 200
        # `terminate` fails when the process does not end in time
        assert server.terminate() in (0, -signal.SIGTERM)
