"""The WebSocket transport: a Channels consumer with its own receive loop.

The consumer is an ordinary `AsyncConsumer` (`as_asgi()`, routable, wrappable by
middleware), but it does not use Channels' dispatch: no mailbox on the channel layer per
socket, no task and no thread hop per frame. Sockets of this service never touch the
database, so there is no connection to clean up between frames.

Spec: Client WebSocket protocol; Disconnect advice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from channels.consumer import AsyncConsumer

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.config import origins
from realtime.errors import DisconnectBadRequest, DisconnectMessageTooBig
from realtime.node.hooks import NO_HANDSHAKE
from realtime.node.node import Node
from realtime.node.outbox import Transport
from realtime.protocol.negotiation import Agreement, Codecs
from realtime.serving import serving
from realtime.transports.asgi import ASGIApplication, Receive, Scope, Send
from realtime.transports.handshake import handshake, has_too_many_headers, header
from realtime.transports.servers import daphne, uvicorn
from realtime.transports.websocket_transport import WebSocketTransport


class WebSocketConsumer(AsyncConsumer):  # type: ignore[misc]  # channels has no types
    """One WebSocket connection."""

    channel_layer_alias = None  # sockets have no mailbox of their own
    refusal: tuple[int, bytes] = 403, b"Forbidden\n"
    """Status and body for an origin that is not allowed."""

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
        if not origins.is_allowed(header(scope, b"origin"), node.config.allowed_origins):
            await deny(scope, send, *self.refusal)
            return
        if has_too_many_headers(scope):
            await deny(scope, send, 431, b"Request Header Fields Too Large\n")
            return
        codec, subprotocol = self.negotiate(scope, node.codecs)
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        limit = self.size_limit(node)
        carrier = _carrier(send, limit)
        transport = self.transport(carrier, node)
        made = NO_HANDSHAKE
        if node.hooks.wants_handshake:
            extra = node.config.proxy_extra_http_headers
            made = handshake(scope, codec.format, extra, transport=transport.name)
        client = Client(node, transport, codec, made)
        dispatcher = Dispatcher(client)
        carrier.when_ready(client.outbox.ready)
        try:
            await self._receive(dispatcher, receive, limit)
        except asyncio.CancelledError:
            if node.stopping and not carrier.abandoned:
                # The server ends its applications; clients are being told, see it through.
                await self._receive(dispatcher, receive, limit)
            elif not carrier.abandoned:
                raise
        finally:
            transport.closed()
            client.close(None)

    def size_limit(self, node: Node) -> int | None:
        """Bytes a client may send at once, None for no limit."""
        return node.config.message_size_limit_bytes

    def negotiate(self, scope: Scope, codecs: Codecs) -> Agreement:
        """Return the codec a handshake asks for, and the subprotocol to answer with."""
        return codecs.negotiate(scope.get("query_string", b""), scope.get("subprotocols", ()))

    def transport(self, carrier: WebSocketTransport, node: Node) -> Transport:
        """What the client sends by."""
        return carrier

    def frames(self, data: bytes) -> Sequence[bytes]:
        """The frames of the protocol in what came.

        Raises:
            ValueError: there are none in it.
        """
        return (data,)

    async def _receive(self, dispatcher: Dispatcher, receive: Receive, limit: int | None) -> None:
        """Hand over frames until the connection is gone."""
        client = dispatcher.client
        while True:
            event = await receive()
            if event["type"] != "websocket.receive":
                return
            if client.is_closing():
                continue
            text = event.get("text")
            data: bytes = event["bytes"] if text is None else text.encode()
            if limit is not None and len(data) > limit:
                client.close(DisconnectMessageTooBig())
                continue
            try:
                frames = self.frames(data)
            except ValueError:
                client.close(DisconnectBadRequest())
                continue
            for frame in frames:
                await dispatcher.receive(frame)


def _carrier(send: Send, size_limit: int | None) -> WebSocketTransport:
    """The transport for a server's `send`: one that knows the server, or the plain one."""
    receiving = asyncio.current_task()
    assert receiving is not None
    return (
        daphne.transport(send, receiving, size_limit)
        or uvicorn.transport(send, receiving)
        or WebSocketTransport(send, receiving)
    )


async def deny(scope: Scope, send: Send, status: int, body: bytes) -> None:
    """Refuse a handshake with an HTTP status, where the server can; otherwise it sends 403."""
    if "websocket.http.response" in scope.get("extensions", {}):
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        await send({"type": "websocket.close", "code": 1000})
