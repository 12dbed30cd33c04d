"""Unidirectional clients, byte for byte: one request, and pushes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.live.configurations import NAMESPACES, Options
from tests.live.raw_http import TIMEOUT, Exchange, open_exchange
from tests.live.streaming.client import JSON_BODY
from tests.server import Server

RECEIVERS: Options = {
    "uni_sse": True,
    "uni_http_stream": True,
    "uni_websocket": True,
    "namespaces": NAMESPACES,
}

UNI_SSE = "/connection/uni_sse"
UNI_HTTP_STREAM = "/connection/uni_http_stream"
UNI_WEBSOCKET = "/connection/uni_websocket"

EVERY_RECEIVER = {
    "uni_sse": (UNI_SSE, "GET"),
    "uni_sse by POST": (UNI_SSE, "POST"),
    "uni_http_stream": (UNI_HTTP_STREAM, "POST"),
    "uni_websocket": (UNI_WEBSOCKET, "message"),
    "uni_websocket by query": (UNI_WEBSOCKET, "query"),
}
"""Path, and how the connect request is sent."""


class Receiver:
    """A client of one stream; the next message is read by `text`."""

    def __init__(self, source: Exchange | ClientConnection, path: str) -> None:
        self._source = source
        self._path = path

    async def text(self) -> str:
        """The next message, which must stand alone."""
        if isinstance(self._source, ClientConnection):
            message = await self._source.recv()
            assert isinstance(message, str)
            return message
        if self._path == UNI_HTTP_STREAM:
            return (await self._source.read_until(b"\n")).decode().removesuffix("\n")
        event = (await self._source.read_until(b"\n\n")).decode()
        assert event.startswith("data: "), event
        return event.removeprefix("data: ").removesuffix("\n\n")

    async def message(self) -> dict[str, Any]:
        """The next message, decoded."""
        decoded: dict[str, Any] = json.loads(await self.text())
        return decoded

    async def ending(self) -> tuple[int, str]:
        """Read the disconnect push and the end; returns code and reason."""
        disconnect = (await self.message())["disconnect"]
        told = disconnect["code"], disconnect["reason"]
        if isinstance(self._source, Exchange):
            assert await self._source.rest() == b""
            return told
        with pytest.raises(ConnectionClosed):
            await self._source.recv()
        assert (self._source.close_code, self._source.close_reason) == told
        return disconnect["code"], disconnect["reason"]


@asynccontextmanager
async def receiving(
    server: Server,
    path: str,
    way: str,
    request: Mapping[str, Any] | str,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Receiver]:
    """Open a stream with this connect request."""
    text = request if isinstance(request, str) else json.dumps(request)
    query = f"{path}?cf_connect={quote(text)}"
    if path == UNI_WEBSOCKET:
        url = f"ws://127.0.0.1:{server.port}{path if way == 'message' else query}"
        options: dict[str, Any] = {"additional_headers": headers or {}, "open_timeout": TIMEOUT}
        async with connect(url, proxy=None, ping_interval=None, **options) as socket:
            if way == "message":
                await socket.send(text)
            yield Receiver(socket, path)
        return
    body = text.encode() if way == "POST" else None
    fields = {**JSON_BODY, **(headers or {})}
    exchange = await open_exchange(server, way, query if body is None else path, body, fields)
    try:
        await exchange.begin()
        assert exchange.status == 200
        if path == UNI_SSE:
            assert await exchange.read_until(b"\r\n") == b"\r\n"
        yield Receiver(exchange, path)
    finally:
        await exchange.close()
