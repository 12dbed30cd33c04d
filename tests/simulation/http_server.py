"""A server of HTTP: the product's ASGI applications run behind it as they are.

    client ══ Request ══► ServerExchange ─ scope, receive, send ─► SockJS, Streaming
           ◄══ Head, bytes, DONE ══

Each request has a link of its own. There are two kinds of servers, as there are outside:

    plain     `send` waits while the peer does not read, as of uvicorn
    daphne    `send` never waits; the product asks for what has not left, and drops the connection
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from realtime.transports.asgi import Event
from realtime.transports.sockjs.application import serves_sockjs
from tests.simulation.network import End

if TYPE_CHECKING:
    from realtime.node.node import Node
    from tests.simulation.members import NodeProcess

HTTP = "http"
"""Where a node takes requests."""
HIGH_WATER = 1000
"""Bytes that have not left, from which on the `send` of a plain server waits."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of HTTP."""

    method: str
    path: str
    body: bytes = b""
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response."""

    status: int


DONE = object()
"""The end of a response that is whole."""


class ServerExchange:
    """One request at a node. See `streaming.transport.PeerConnection` for the part of daphne."""

    def __init__(self, member: NodeProcess) -> None:
        self._member = member
        self._end: End | None = None
        self._gone = asyncio.Event()
        self._room = asyncio.Event()
        self._body: bytes | None = None
        self._is_whole = False

    # from the network

    def connection_made(self, transport: End) -> None:
        self._end = transport
        transport.on_room = self._room.set
        if self._member.node is None:
            transport.abort()

    def data_received(self, data: Sequence[Any]) -> None:
        node = self._member.node
        for item in data:
            if node is not None and isinstance(item, Request):
                self._body = item.body
                self._member.process.spawn(self._serve(node, item))

    def connection_lost(self, error: Exception | None) -> None:
        self._gone.set()
        self._room.set()

    # for the application

    async def _serve(self, node: Node, request: Request) -> None:
        member, end = self._member, self._end
        assert end is not None
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": request.path,
            "query_string": request.query,
            "headers": list(request.headers),
            "client": ("192.0.2.1", 1),
        }
        is_sockjs = serves_sockjs(request.path, node.config)
        application = member.sockjs if is_sockjs else member.streaming
        send = partial(_send, self) if member.is_daphne else self._send_when_read
        try:
            await application(node, scope, self._receive, send)
        except Exception as error:
            member.service.world.defects.append(f"{request.path} at {member.name}: {error!r}")
        finally:
            if not self._is_whole:
                end.abort()

    async def _receive(self) -> Event:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send_when_read(self, event: Event) -> None:
        await _send(self, event)
        while self.backlog_bytes() > HIGH_WATER:
            self._room.clear()
            await self._room.wait()

    def write(self, event: Event) -> None:
        """Write an event of a response."""
        end = self._end
        if end is None or self._gone.is_set():
            return
        if event["type"] == "http.response.start":
            end.write(Head(event["status"]))
            return
        end.write(event["body"])
        if not event.get("more_body", False):
            self._is_whole = True
            end.write(DONE)
            end.close()

    def backlog_bytes(self) -> int:
        """Return bytes that have not left."""
        return 0 if self._end is None or self._gone.is_set() else self._end.backlog

    def abort(self) -> None:
        """Drop the connection."""
        if self._end is not None:
            self._end.abort()

    def hide_query(self) -> None:
        """There is no access log."""


async def _send(exchange: ServerExchange, event: Event) -> None:
    exchange.write(event)
