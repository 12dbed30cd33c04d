"""SockJS over WebSocket: SockJS frames around frames of the protocol.

Each socket is a session of its own, whatever name is in its path.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.errors import Disconnect, DisconnectBadRequest, DisconnectMessageTooBig
from realtime.node.node import Node
from realtime.protocol.codec import Codec
from realtime.protocol.frames import Frame
from realtime.protocol.negotiation import Agreement, Codecs
from realtime.transports.asgi import Scope
from realtime.transports.sending import WebSocketTransport, WrappingTransport
from realtime.transports.sockjs import framing
from realtime.transports.sockjs.framing import SOCKJS
from realtime.transports.websocket import WebSocketConsumer

ESCAPED = 3
"""A frame inside a JSON string takes up to 3 times its bytes: 2 for quotes and backslashes, 3 for
characters of 2 or 4 bytes that the client writes as `\\uXXXX`."""
BRACKETS = 4
"""Bytes around one frame: `["` and `"]`."""

_OPEN = Frame(SOCKJS.open, binary=False)
_HEARTBEAT = Frame(SOCKJS.heartbeat, binary=False)


def _wrapped(frame: Frame) -> Frame:
    """Return the SockJS frame around a frame of the protocol."""
    return Frame(frame.form(SOCKJS.messages), binary=False)


def _closing(code: int, reason: str) -> Frame:
    return Frame(SOCKJS.close(code, reason), binary=False)


class SockJSTransport(WrappingTransport):
    """Carries SockJS frames over a WebSocket. See `outbox.Transport`."""

    name = SOCKJS.transport

    def __init__(self, websocket: WebSocketTransport, node: Node) -> None:
        super().__init__(websocket)
        self._timers = node.timers
        self._heartbeat_delay = node.config.sockjs_heartbeat_delay
        self._heartbeat = node.timers.timer(self._beat)
        websocket.send(_OPEN)
        self._set_heartbeat()

    def send(self, frame: Frame) -> int:
        self._set_heartbeat()
        wrapped = frame.form(_wrapped)
        backlog = self._websocket.send(wrapped)
        # the outbox counts bytes of messages; SockJS wraps them in strings, and escapes add to them
        return backlog and backlog * len(frame.data) // len(wrapped.data)

    async def close(self, code: int, reason: str) -> None:
        self._heartbeat.cancel()
        await self._websocket.close(code, reason, _closing(code, reason))

    def closed(self) -> None:
        self._heartbeat.cancel()
        super().closed()

    def _beat(self) -> None:
        if self._websocket.ready:
            self._websocket.send(_HEARTBEAT)
        self._set_heartbeat()

    def _set_heartbeat(self) -> None:
        if self._heartbeat_delay > 0:
            self._heartbeat.set(self._timers.now() + self._heartbeat_delay)


class SockJSConsumer(WebSocketConsumer):
    """One SockJS session over WebSocket."""

    refusal = 200, b""  # as the reference server

    def last_frames(self, codec: Codec, disconnect: Disconnect) -> Sequence[Frame]:
        return _OPEN, _closing(*codec.closing(disconnect))

    def size_limit(self, node: Node) -> int | None:
        limit = node.config.message_size_limit_bytes
        return None if limit is None else ESCAPED * limit + BRACKETS

    def negotiate(self, scope: Scope, codecs: Codecs) -> Agreement:
        return Agreement(codecs.json, None)

    def transport(self, websocket: WebSocketTransport, node: Node) -> SockJSTransport:
        return SockJSTransport(websocket, node)

    def frames(self, data: bytes, node: Node) -> Sequence[bytes]:
        try:
            return framing.decode(data, node.config.message_size_limit_bytes) if data else ()
        except framing.TooLarge:
            raise DisconnectMessageTooBig from None
        except ValueError:
            raise DisconnectBadRequest from None
