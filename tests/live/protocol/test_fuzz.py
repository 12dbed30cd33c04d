"""Whatever clients send, the server goes on: a canary receives every publication in order.

Afterwards only the canary is left and the server's log holds no traceback. Malformed commands are
in tests/chaos/test_frames.py.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from tests.conftest import connection_token
from tests.live.api_methods import result
from tests.live.configurations import MAIN, Serve
from tests.protocol_client import Closed, ProtocolClient, open_client
from tests.server import Server, wait_until

CANARY = "long:canary"

TOO_BIG_CODES = (1009, 1006)
"""The close code after a frame that is too big; 1006 when the peer drops it in mid-frame."""


class Canary:
    """A subscriber that checks that publications keep coming in order."""

    def __init__(self, server: Server, client: ProtocolClient, top: int) -> None:
        """`top`: number of publications in the channel so far."""
        self.server = server
        self._client = client
        self._next = top

    async def sing(self) -> None:
        """Publish once and wait for the push."""
        await asyncio.to_thread(self.server.publish, CANARY, self._next)
        publication = await self._client.publication()
        assert (publication["data"], publication["seq"]) == (self._next, self._next + 1)
        self._next += 1

    async def sing_until(self, work: asyncio.Task[None]) -> None:
        """Sing now and then while the work goes on, and once more."""
        while not work.done():
            await self.sing()
            await asyncio.wait([work], timeout=0.02)
        await work
        await self.sing()


def tracebacks(log: str) -> list[str]:
    """Return the tracebacks in a log, each with the line before and some lines after it."""
    lines = log.splitlines()
    found = [
        "\n".join(lines[max(0, number - 1) : number + 40])
        for number, line in enumerate(lines)
        if "Traceback" in line
    ]
    # uvicorn itself logs one for a text frame that is not UTF-8
    return [text for text in found if "Invalid UTF-8 sequence received" not in text]


def only_the_canary_is_left(server: Server) -> bool:
    [node] = result(server, "info")["nodes"]
    counts = [node[f"num_{what}"] for what in ("clients", "users", "subs", "channels")]
    return counts == [1, 1, 1, 1]


@pytest.fixture(params=["daphne", "uvicorn"])
async def canary(request: pytest.FixtureRequest, serve: Serve) -> AsyncIterator[Canary]:
    """A canary on a server that only these tests use, checked at the end of a test."""
    server: Server = serve(server=request.param, name="fuzzed", **MAIN)
    logged = len(server.log)
    server.api("history_remove", channel=CANARY)
    async with open_client(server.socket, token=connection_token("canary")) as client:
        result = await client.result("subscribe", {"channel": CANARY})
        canary = Canary(server, client, result.get("seq", 0))
        await canary.sing()
        yield canary
        await canary.sing()
        wait_until(lambda: only_the_canary_is_left(server), what="the end of the others")
        assert server.api("channels") == {"result": {"channels": [CANARY]}}
        await client.quiet()
    assert tracebacks(server.log[logged:]) == []


# visitors


@asynccontextmanager
async def visitor(server: Server, **options: Any) -> AsyncIterator[ProtocolClient]:
    """Send frames as a client that the server may close at any time."""
    with suppress(ConnectionClosed, Closed):
        async with open_client(server.socket, token=connection_token("visitor"), **options) as c:
            yield c


async def test_huge_frames(canary: Canary, format_name: str) -> None:
    async def visit() -> None:
        for size in (65_537, 1_000_000, 20_000_000):
            async with visitor(canary.server, format_name=format_name) as client:
                await client.socket.send(b"[" * size)
                assert (await client.closed())[0] in TOO_BIG_CODES
            async with visitor(canary.server, format_name=format_name) as client:
                await client.socket.send([b" " * 60_000] * (size // 60_000 + 2))
                assert (await client.closed())[0] in TOO_BIG_CODES

    await canary.sing_until(asyncio.create_task(visit()))


async def test_frames_full_of_small_commands(canary: Canary, format_name: str) -> None:
    async def visit() -> None:
        async with visitor(canary.server, format_name=format_name) as client:
            one = client.encode(1, "ping", None)
            count = 65_000 // (len(one) + 1)
            for _ in range(5):
                frame = "\n".join([str(one)] * count) if isinstance(one, str) else one * count
                await client.socket.send(frame)
            for _ in range(5 * count):
                await client.reply(1)

    await canary.sing_until(asyncio.create_task(visit()))


# half-open connections


def connected_socket(server: Server) -> socket.socket:
    address = urlsplit(server.socket)
    return socket.create_connection((address.hostname, address.port), timeout=10)


HANDSHAKE = (
    b"GET /connection/websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)


def reset(connection: socket.socket) -> None:
    """Close with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize(
    "sent",
    [b"", HANDSHAKE[:40], HANDSHAKE, HANDSHAKE + b"\x81", b"\x16\x03\x01\x02", b"\r\n" * 50],
    ids=["silence", "half a handshake", "handshake", "half a frame", "TLS", "line breaks"],
)
async def test_half_open_connections(canary: Canary, sent: bytes) -> None:
    connections = [connected_socket(canary.server) for _ in range(50)]
    for connection in connections:
        with suppress(ConnectionError):
            connection.sendall(sent)
    await canary.sing()
    for number, connection in enumerate(connections):
        if number % 2:
            reset(connection)
        else:
            connection.close()


@pytest.mark.parametrize(
    "frame",
    [
        b"\x81\x05hello",
        b"\xc1\x80\x00\x00\x00\x00",
        b"\x83\x80\x00\x00\x00\x00",
        b"\x80\x80\x00\x00\x00\x00",
        b"\x89\xfe\x00\x80\x00\x00\x00\x00" + bytes(128),
        b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
        b"\x81\x82\x00\x00\x00\x00\xff\xff",
        b"\x88\x81\x00\x00\x00\x00\x03",
        b"\x88\x82\x00\x00\x00\x00\x00\x01",
    ],
    ids=[
        "no mask",
        "compressed without agreement",
        "unknown opcode",
        "continuation of nothing",
        "long ping",
        "length of eight exabytes",
        "text that is not UTF-8",
        "close with half a code",
        "close with code 1",
    ],
)
async def test_frames_that_break_the_websocket_protocol_end_the_connection(
    canary: Canary, frame: bytes
) -> None:
    def visit() -> None:
        with connected_socket(canary.server) as connection:
            connection.sendall(HANDSHAKE)
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(4096)
            assert answer.startswith(b"HTTP/1.1 101 ")
            connection.sendall(frame)
            with suppress(ConnectionError):
                while connection.recv(4096):
                    pass

    await canary.sing_until(asyncio.create_task(asyncio.to_thread(visit)))


async def test_hundreds_of_short_connections(canary: Canary) -> None:
    async def visit(number: int) -> None:
        if number % 4 == 0:
            connection = await asyncio.to_thread(connected_socket, canary.server)
            connection.sendall(HANDSHAKE if number % 8 else b"")
            reset(connection)
            return
        async with visitor(
            canary.server, format_name="json" if number % 2 else "protobuf"
        ) as client:
            await client.send("subscribe", {"channel": f"joined:{number % 50}"})
            if number % 4 == 1:
                await client.abort()

    async def visits() -> None:
        for start in range(0, 800, 40):
            await asyncio.gather(*(visit(number) for number in range(start, start + 40)))

    await canary.sing_until(asyncio.create_task(visits()))
