"""A client over a stream, byte for byte: one response, and requests to `/emulation`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from realtime.protocol.v2 import client_pb2
from tests.conftest import connection_token
from tests.live.configurations import NAMESPACES, Options
from tests.live.raw_http import Answer, Exchange, open_exchange
from tests.server import Server

STREAMS: Options = {"http_stream": True, "sse": True, "namespaces": NAMESPACES}

BINARY = "application/octet-stream"
JSON_BODY = {"Content-Type": "application/json"}
BINARY_BODY = {"Content-Type": BINARY}

HTTP_STREAM = "/connection/http_stream"
SSE = "/connection/sse"
EMULATION = "/emulation"


def connect_command(user: str = "17") -> dict[str, Any]:
    """The first command of a client with a token."""
    return {"id": 1, "connect": {"token": connection_token(user)}}


def frame_of(*commands: Mapping[str, Any]) -> bytes:
    """Commands in one JSON frame."""
    return "\n".join(map(json.dumps, commands)).encode()


async def ask(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send a request and wait for the whole response."""
    exchange = await open_exchange(server, method, path, body, headers)
    try:
        await exchange.begin(method)
        return Answer(exchange.status, exchange.headers, await exchange.rest())
    finally:
        await exchange.close()


class Stream:
    """A JSON stream that is open."""

    def __init__(self, exchange: Exchange, events: bool) -> None:
        self.exchange = exchange
        self._events = events
        self.session = ""
        self.node = ""
        self.client = ""

    async def text(self) -> str:
        """The next message."""
        if not self._events:
            return (await self.exchange.read_until(b"\n")).decode().removesuffix("\n")
        event = (await self.exchange.read_until(b"\n\n")).decode()
        assert event.startswith("data: "), event
        return event.removeprefix("data: ").removesuffix("\n\n")

    async def message(self) -> dict[str, Any]:
        """The next message, decoded."""
        decoded: dict[str, Any] = json.loads(await self.text())
        return decoded

    async def connected(self) -> dict[str, Any]:
        """Read the reply of connect, and return its result."""
        result: dict[str, Any] = (await self.message())["connect"]
        self.session, self.node, self.client = (
            result[name] for name in ("session", "node", "client")
        )
        return result

    async def emulate(self, server: Server, *commands: Mapping[str, Any]) -> int:
        """Send commands in a request beside the stream; returns the status."""
        return await self.emulate_frame(server, frame_of(*commands).decode())

    async def emulate_frame(self, server: Server, frame: str) -> int:
        """As `emulate`, with any frame."""
        body = json.dumps({"session": self.session, "node": self.node, "data": frame}).encode()
        return (await ask(server, "POST", EMULATION, body, JSON_BODY)).status

    async def ending(self) -> tuple[int, str]:
        """Read the disconnect push and the end; returns code and reason."""
        push = (await self.message())["push"]["disconnect"]
        assert await self.exchange.rest() == b""
        return push["code"], push["reason"]


@asynccontextmanager
async def streaming(
    server: Server, path: str, first_frame: bytes, method: str = "POST"
) -> AsyncIterator[Stream]:
    """Open a stream; its head has been read."""
    if method == "GET":
        query = f"{path}?cf_connect={quote(first_frame.decode())}"
        exchange = await open_exchange(server, "GET", query)
    else:
        exchange = await open_exchange(server, "POST", path, first_frame, JSON_BODY)
    try:
        await exchange.begin()
        if path == SSE:
            assert await exchange.read_until(b"\r\n") == b"\r\n"
        yield Stream(exchange, events=path == SSE)
    finally:
        await exchange.close()


class BinaryStream:
    """A stream in Protobuf."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def reply(self) -> client_pb2.Reply:
        """The next message, whose size must be below 128 bytes times 128."""
        length = shift = 0
        while True:
            byte = (await self._exchange.read(1))[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return client_pb2.Reply.FromString(await self._exchange.read(length))
