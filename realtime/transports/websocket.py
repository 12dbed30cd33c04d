"""The WebSocket transport: a Channels consumer with its own receive loop.

The consumer is an ordinary `AsyncConsumer` (`as_asgi()`, routable, wrappable by
middleware), but it does not use Channels' dispatch: no mailbox on the channel layer per
socket, no task and no thread hop per frame. Sockets of this service never touch the
database, so there is no connection to clean up between frames.

Spec: Client WebSocket protocol; Disconnect advice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer

from realtime import origin, serving
from realtime.asgi_types import ASGIApplication, Receive, Scope, Send
from realtime.client import Client
from realtime.errors import DisconnectMessageTooBig
from realtime.hooks.base import FORWARDED_HEADERS, NO_HANDSHAKE, Handshake
from realtime.transports import daphne, uvicorn
from realtime.transports.plain import WebSocketTransport

SUBPROTOCOLS: Mapping[str, str] = {
    "centrifuge-protobuf": "protobuf",
    "centrifuge-json": "json",
}
"""Subprotocols that are accepted when offered → format."""

HEADERS_MAX_BYTES = 32 * 1024
"""Of a handshake: what connections keep of it must not add up. daphne takes half of that,
uvicorn with websockets-sansio a megabyte."""


class WebSocketConsumer(AsyncConsumer):  # type: ignore[misc]
    """One WebSocket connection."""

    channel_layer_alias = None  # sockets have no mailbox of their own

    @classmethod
    def as_asgi(cls, **initkwargs: Any) -> ASGIApplication:
        """The consumer as an ASGI application, for a site's own routing too."""
        daphne.install()
        application: ASGIApplication = super().as_asgi(**initkwargs)
        return application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        node = await serving.start()
        event = await receive()
        if event["type"] != "websocket.connect":
            return
        if not origin.is_allowed(_header(scope, b"origin"), node.config.allowed_origins):
            await deny(scope, send, 403, b"Forbidden\n")
            return
        if _size_of_headers(scope) > HEADERS_MAX_BYTES:
            await deny(scope, send, 431, b"Request Header Fields Too Large\n")
            return
        format_name, subprotocol = _choose_format(scope)
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        transport = _transport(send, node.config.message_size_limit_bytes)
        handshake = NO_HANDSHAKE
        if node.hooks.wants_handshake:
            handshake = _handshake(scope, format_name, node.config.proxy_extra_http_headers)
        client = Client(node, transport, node.codecs[format_name], handshake)
        transport.when_ready(client.outbox.ready)
        try:
            await self._receive(client, receive)
        except asyncio.CancelledError:
            if node.stopping and not transport.abandoned:
                # The server ends its applications; clients are being told, see it through.
                await self._receive(client, receive)
            elif not transport.abandoned:
                raise
        finally:
            transport.closed()
            client.close(None)

    async def _receive(self, client: Client, receive: Receive) -> None:
        """Hand over frames until the connection is gone."""
        limit = client.node.config.message_size_limit_bytes
        while True:
            event = await receive()
            if event["type"] != "websocket.receive":
                return
            if client.is_closing():
                continue
            text = event.get("text")
            frame: bytes = event["bytes"] if text is None else text.encode()
            if limit is not None and len(frame) > limit:
                client.close(DisconnectMessageTooBig())
            else:
                await client.receive(frame)


def _transport(send: Send, size_limit: int | None) -> WebSocketTransport:
    """The transport for a server's `send`: one that knows the server, or the plain one."""
    receiving = asyncio.current_task()
    assert receiving is not None
    return (
        daphne.transport(send, receiving, size_limit)
        or uvicorn.transport(send, receiving)
        or WebSocketTransport(send, receiving)
    )


def _choose_format(scope: Scope) -> tuple[str, str | None]:
    """The format a handshake asks for, and the subprotocol to answer with.

    Beyond the spec: an offered subprotocol of the client SDKs is echoed, because clients
    that offer one refuse a handshake without it.
    """
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    wants_protobuf = "protobuf" in (query.get("format", [""])[0], query.get("protocol", [""])[0])
    for offered in scope.get("subprotocols", ()):
        if offered in SUBPROTOCOLS:
            return ("protobuf" if wants_protobuf else SUBPROTOCOLS[offered]), offered
    return ("protobuf" if wants_protobuf else "json"), None


def _size_of_headers(scope: Scope) -> int:
    return sum(len(name) + len(value) for name, value in scope["headers"])


def _handshake(scope: Scope, format_name: str, extra: Sequence[str] | None) -> Handshake:
    """What hooks may want to know of a connection later."""
    wanted = {*FORWARDED_HEADERS, *(name.lower() for name in extra or ())}
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in wanted:
            text = value.decode("latin-1")
            # several of a name are one list (RFC 9110, 5.3); cookies have their own comma
            separator = "; " if name == "cookie" else ", "
            headers[name] = f"{headers[name]}{separator}{text}" if name in headers else text
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    encoding = "binary" if query.get("encoding", [""])[0] == "binary" else "json"
    return Handshake(headers, _header(scope, b"host") or "", format_name, encoding)


def _header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


async def deny(scope: Scope, send: Send, status: int, body: bytes) -> None:
    """Refuse a handshake with an HTTP status, where the server can; otherwise it sends 403."""
    if "websocket.http.response" in scope.get("extensions", {}):
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        await send({"type": "websocket.close", "code": 1000})
