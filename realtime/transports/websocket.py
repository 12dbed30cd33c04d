"""The WebSocket transport: a Channels consumer with its own receive loop.

The consumer is an ordinary `AsyncConsumer` (`as_asgi()`, routable, wrappable by middleware), but
it does not use Channels' dispatch. So a socket has no mailbox on the channel layer, and a frame
needs neither a task nor a thread. Sockets of this service do not use the database, so there is no
database connection to close between frames.

See docs/protocol.md, 2.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from channels.consumer import AsyncConsumer

from realtime.clients.client import Client
from realtime.clients.dispatch import Dispatcher
from realtime.config.options import Config
from realtime.errors import (
    Disconnect,
    DisconnectMessageTooBig,
    DisconnectServerError,
    DisconnectShutdown,
    EngineUnavailable,
)
from realtime.node.hooks import Hooks
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
from realtime.node.outbox import Transport
from realtime.protocol.codec import Codec
from realtime.protocol.frames import Frame
from realtime.protocol.negotiation import Agreement, Codecs
from realtime.serving import serving
from realtime.transports.asgi import (
    UNAVAILABLE,
    ASGIApplication,
    Headers,
    Receive,
    Scope,
    Send,
    header,
)
from realtime.transports.handshake import (
    address_of,
    come_later,
    has_too_many_headers,
    kept_of,
    may_use,
    without_credentials,
)
from realtime.transports.sending import (
    CLOSE_TIMEOUT,
    WebSocketTransport,
    close_event,
    send_event,
)
from realtime.transports.servers import daphne, uvicorn
from realtime.transports.servers.daphne import TOO_LARGE

logger = logging.getLogger("realtime.client")


_NO_HOOKS = Hooks()

FRAME_PINGS = b"cf_ws_frame_ping_pong=true"
"""What a client has in its query if it wants PING frames in place of pings of the protocol. An ASGI
application cannot send them: servers do so by themselves, as they are configured."""


class ClientTransport(Transport, Protocol):
    """The transport of a client, whose outbox wants to know when it can send again."""

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call `callback` each time what had to wait has left."""


def serves_websocket(path: str, config: Config) -> bool:
    """Return whether a path is that of the WebSocket, and not turned off."""
    return path == config.websocket_handler_prefix and not config.websocket_disable


class WebSocketConsumer(AsyncConsumer):  # type: ignore[misc]  # channels has no types
    """One WebSocket connection."""

    channel_layer_alias = None  # no mailbox on the channel layer
    refusal: tuple[int, bytes] = 403, b"Forbidden\n"
    """HTTP status and body for an origin that is not allowed."""
    takes_any_page = True
    """Whether the protocol lets pages of any origin connect where `allowed_origins` is not set.
    Hooks and proxies then get no cookies of those that may not use the service."""

    @classmethod
    def as_asgi(cls, **initkwargs: Any) -> ASGIApplication:
        """Return the consumer as an ASGI application; a site may route to it, too."""
        daphne.install()
        application: ASGIApplication = super().as_asgi(**initkwargs)
        return application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            node = await serving.start()
        except EngineUnavailable:
            await self.turn_away(serving.config(), scope, receive, send)
            return
        if not await self.admit(node.config, node, scope, receive, send):
            return
        address = address_of(scope, node.config.trusted_proxies)
        try:
            await node.admission.take_turn(address)
        except NotAdmitted as refused:
            await deny(scope, send, *UNAVAILABLE, [come_later(refused)])
            return
        codec, subprotocol, is_final = self.negotiate(scope, node.codecs)
        limit = self.size_limit(node)
        uvicorn.limit_messages(send, limit)
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        websocket = _transport(send, limit)
        transport = self.transport(websocket, node)
        opening = kept_of(node, scope, codec.format, transport.name, address)
        if node.hooks.wants_handshake and not self.takes_credentials(node, scope):
            opening = without_credentials(opening)
        frame_pings = FRAME_PINGS in scope.get("query_string", b"").split(b"&")
        client = Client(node, transport, codec, opening, wants_pings=not frame_pings)
        dispatcher = Dispatcher(client, recognises=not is_final)
        transport.when_ready(client.outbox.ready)
        try:
            await self.receive_frames(dispatcher, receive, limit)
        except asyncio.CancelledError:
            if not websocket.abandoned:
                # some servers end their applications before, or while, the node closes its clients
                client.close(DisconnectShutdown())
                await self.receive_frames(dispatcher, receive, limit)
        finally:
            transport.closed()
            client.close(None)

    async def turn_away(
        self,
        config: Config,
        scope: Scope,
        receive: Receive,
        send: Send,
        disconnect: Disconnect | None = None,
    ) -> None:
        """Close a connection with code and advice where there is no node yet.

        Args:
            config: the options in force.
            disconnect: why; by default the engine is away.
        """
        if not await self.admit(config, None, scope, receive, send):
            return
        codec, subprotocol, _ = self.negotiate(scope, Codecs(config.v3_use_offset))
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        disconnect = disconnect or DisconnectServerError()
        for frame in self.last_frames(codec, disconnect):
            await send(send_event(frame))
        await send(close_event(*codec.closing(disconnect)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while (await receive())["type"] != "websocket.disconnect":
                    pass

    async def admit(
        self, config: Config, node: Node | None, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Return whether a handshake may be accepted; otherwise refuse it."""
        event = await receive()
        if event["type"] != "websocket.connect":
            return False
        if not self.admits(config, node, scope):
            logger.info(
                "Refused a handshake from %s: allowed_origins does not have the origin %r",
                address_of(scope, config.trusted_proxies) or "an unknown address",
                header(scope, b"origin"),
            )
            await deny(scope, send, *self.refusal)
            return False
        if has_too_many_headers(scope):
            await deny(scope, send, 431, b"Request Header Fields Too Large\n")
            return False
        return True

    def admits(self, config: Config, node: Node | None, scope: Scope) -> bool:
        """Return whether the page that sent a handshake may use the service.

        Args:
            node: None if there is none yet.
        """
        # before there is a node, no hook or login gives a user
        hooks = _NO_HOOKS if node is None or self.takes_any_page else node.hooks
        return may_use(config, hooks, scope)

    def takes_credentials(self, node: Node, scope: Scope) -> bool:
        """Return whether hooks and proxies get the credentials of a handshake."""
        if not self.takes_any_page or node.config.allowed_origins is not None:
            return True  # the page was asked for before
        return may_use(node.config, node.hooks, scope)

    def last_frames(self, codec: Codec, disconnect: Disconnect) -> Sequence[Frame]:
        """Return the frames to send before the close frame where no client was made."""
        return ()

    def size_limit(self, node: Node) -> int | None:
        """Return the largest frame of a client in bytes; None for no limit."""
        return node.config.message_size_limit_bytes

    def negotiate(self, scope: Scope, codecs: Codecs) -> Agreement:
        """Return the codec a handshake asks for, and the subprotocol to answer with."""
        return codecs.negotiate(scope.get("query_string", b""), scope.get("subprotocols", ()))

    def transport(self, websocket: WebSocketTransport, node: Node) -> ClientTransport:
        """Return the client's transport, which may wrap the WebSocket's."""
        return websocket

    def frames(self, data: bytes, node: Node) -> Sequence[bytes]:
        """Return the frames of the protocol in one WebSocket message.

        Raises:
            Disconnect: the message holds none, or one that is too large.
        """
        return (data,)

    async def receive_frames(
        self, dispatcher: Dispatcher, receive: Receive, limit: int | None
    ) -> None:
        """Dispatch frames until the connection is closed."""
        client = dispatcher.client
        while True:
            frames = self._take(client, await receive(), limit)
            if frames is None:
                return
            if not frames:
                await dispatcher.receive_nothing()
            for frame in frames:
                await dispatcher.receive(frame)
            # nothing of a message stays while the client is quiet
            frames, frame = (), b""

    def _take(
        self, client: Client, event: Mapping[str, Any], limit: int | None
    ) -> Sequence[bytes] | None:
        """Return the frames that the client sent; None if the connection is closed."""
        if event["type"] != "websocket.receive":
            if event["type"] != TOO_LARGE:
                return None
            client.close(DisconnectMessageTooBig())
            return ()
        if client.is_closing():
            return ()
        text = event.get("text")
        data: bytes = event["bytes"] if text is None else text.encode()
        if limit is not None and len(data) > limit:
            client.close(DisconnectMessageTooBig())
            return ()
        try:
            return self.frames(data, client.node)
        except Disconnect as disconnect:
            client.close(disconnect.with_traceback(None))
            return ()


def _transport(send: Send, size_limit: int | None) -> WebSocketTransport:
    """Return the transport for a server's `send`: one for this server, or the plain one."""
    receiving = asyncio.current_task()
    assert receiving is not None
    return (
        daphne.transport(send, receiving, size_limit)
        or uvicorn.transport(send, receiving)
        or WebSocketTransport(send, receiving)
    )


async def deny(scope: Scope, send: Send, status: int, body: bytes, more: Headers = ()) -> None:
    """Refuse a handshake with an HTTP status. Servers that cannot do that send 403.

    Args:
        more: headers of the response besides its content type.
    """
    if "websocket.http.response" in scope.get("extensions", {}):
        headers = [(b"content-type", b"text/plain; charset=utf-8"), *more]
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
    else:
        daphne.refuse_with(send, status, more)
        await send({"type": "websocket.close", "code": 1000})
