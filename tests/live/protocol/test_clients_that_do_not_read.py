"""Clients that do not read: the server stops all the same, and closes their connections."""

from __future__ import annotations

import base64
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.live.memory_parts import has_open, needs_proc
from tests.live.server_ways import WAYS, small_socket
from tests.server import Server, wait_until

STOPPED_WITHIN = 12.0
DROPPED_WITHIN = 8.0
ANSWERED_WITHIN = 2.0
"""Seconds in which a client surely may answer a close frame."""
SILENCE = 30.0
"""Seconds without a byte after which a test fails."""
CLOSE_FRAME = 0x88
LARGE = "x" * 100_000
COUNT = 80
"""Publications of LARGE: more than sockets buffer, less than `client_queue_max_size`."""

HANDSHAKE = (
    "GET /connection/websocket HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n\r\n"
)


@pytest.fixture
def subscribe() -> Iterator[Callable[[Server, str], socket.socket]]:
    """Connect a socket and subscribe; nothing is read after that."""
    opened: list[socket.socket] = []

    def subscribe(server: Server, channel: str) -> socket.socket:
        connection = small_socket(server)
        opened.append(connection)
        connection.settimeout(SILENCE)
        connection.sendall(HANDSHAKE.encode())
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        for command in ('{"id":1}', f'{{"id":2,"method":1,"params":{{"channel":"{channel}"}}}}'):
            send(connection, command)
            read_until(connection, b"\n")
        return connection

    yield subscribe
    for connection in opened:
        connection.close()


def send(connection: socket.socket, text: str) -> None:
    """Send a text message of less than 126 bytes, masked with zeros (RFC 6455, 5.2)."""
    payload = text.encode()
    connection.sendall(bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload)


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """Read until these bytes have arrived, and return everything read."""
    received = b""
    while not received.endswith(end):
        part = connection.recv(4096)
        assert part, f"closed after {received!r}"
        received += part
    return received


@pytest.mark.parametrize("way", ["uvicorn", "daphne", "granian"])
def test_server_stops_although_a_client_does_not_read(
    own_server: Callable[..., Server],
    subscribe: Callable[[Server, str], socket.socket],
    unique: str,
    way: str,
) -> None:
    server = own_server(**WAYS[way], client_insecure=True)
    subscribe(server, unique)
    for _ in range(COUNT):
        server.publish(unique, LARGE)
    assert "slow" not in server.log
    began = time.monotonic()
    server.terminate()
    assert time.monotonic() - began < STOPPED_WITHIN


@needs_proc
@pytest.mark.parametrize("way", ["uvicorn", "daphne"])
def test_connection_of_a_slow_client_is_dropped(
    serve: Callable[..., Server],
    subscribe: Callable[[Server, str], socket.socket],
    unique: str,
    way: str,
) -> None:
    server = serve(**WAYS[way], client_insecure=True, client_queue_max_size=500_000)
    closes = len(re.findall("3008: slow", server.log))
    connection = subscribe(server, unique)
    assert has_open(server, connection)

    for _ in range(COUNT):
        server.publish(unique, LARGE)

    wait_until(
        lambda: len(re.findall("3008: slow", server.log)) == closes + 1,
        what="the disconnect of the slow client",
    )
    wait_until(
        lambda: not has_open(server, connection), DROPPED_WITHIN, "the end of its connection"
    )


@pytest.mark.parametrize("way", ["uvicorn", "daphne"])
def test_client_has_time_to_answer_a_close_frame(
    serve: Callable[..., Server],
    subscribe: Callable[[Server, str], socket.socket],
    unique: str,
    way: str,
) -> None:
    """Over a slow network the answer takes a while, and so does a close frame that was lost."""
    server = serve(**WAYS[way], client_insecure=True)
    connection = subscribe(server, unique)
    send(connection, '{"id":0}')  # a bad request
    began = time.monotonic()
    assert connection.recv(4096)[0] == CLOSE_FRAME
    with suppress(ConnectionResetError):
        assert connection.recv(4096) == b""
    assert time.monotonic() - began > ANSWERED_WITHIN
