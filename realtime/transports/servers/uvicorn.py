"""What uvicorn offers beyond ASGI: encoded frames as they are, limits, a hook before it stops.

Encoded frames and limits need `--ws websockets-sansio`: its protocol writes each frame to the
asyncio transport and keeps no state about it. Other WebSocket protocols of uvicorn get plain
`send`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from realtime.protocol.frames import Frame, websocket_bytes
from realtime.serving import serving
from realtime.transports.asgi import Send
from realtime.transports.sending import CLOSE_TIMEOUT, WebSocketTransport

PROTOCOL = ("uvicorn.protocols.websockets.websockets_sansio_impl", "WebSocketsSansIOProtocol")
_HTTP_PROTOCOLS = "uvicorn.protocols.http."
_ATTRIBUTES = ("close_sent", "conn", "shutdown", "transport", "writable")


def _protocol_of(send: Send) -> Any:
    """Return uvicorn's protocol behind its own `send`; None for any other, or a wrapped one."""
    protocol = getattr(send, "__self__", None)
    kind = type(protocol)
    return protocol if (kind.__module__, kind.__qualname__) == PROTOCOL else None


def limit_messages(send: Send, size_limit: int | None) -> None:
    """Limit what a client can make uvicorn take in. Call it before the handshake is accepted.

    uvicorn refuses a larger message as soon as its length is announced. It compresses by default,
    and a few bytes can become a message of any size: the service refuses compression.

    Args:
        size_limit: largest incoming message in bytes; None for uvicorn's own limit.
    """
    connection: Any = getattr(_protocol_of(send), "conn", None)
    own = getattr(connection, "max_message_size", None)
    if size_limit is not None and own is not None and own > size_limit:
        # one byte more, so that the application gets the message and closes with its advice
        connection.max_message_size = size_limit + 1
    response = getattr(_protocol_of(send), "response", None)
    if response is not None and getattr(connection, "extensions", None):
        connection.extensions = []
        del response.headers["Sec-WebSocket-Extensions"]


def transport(send: Send, receiving: asyncio.Task[Any]) -> UvicornTransport | None:
    """Return the transport for uvicorn's own `send`; None for any other, or a wrapped one."""
    protocol = _protocol_of(send)
    if protocol is None:
        return None
    if not all(hasattr(protocol, name) for name in _ATTRIBUTES):
        return None
    return UvicornTransport(send, receiving, protocol)


class UvicornTransport(WebSocketTransport):
    """Writes encoded frames to the asyncio transport, unless it is full."""

    def __init__(self, send: Send, receiving: asyncio.Task[Any], protocol: Any) -> None:
        super().__init__(send, receiving)
        # uvicorn would close its sockets before the lifespan ends, without advice to the clients;
        # now the node closes them, and uvicorn waits
        protocol.shutdown = serving.begin_stop
        # uvicorn says "disconnected" once its close frame is sent, and then waits by itself
        protocol.close_timeout = CLOSE_TIMEOUT
        self._protocol = protocol
        self._transport: asyncio.WriteTransport = protocol.transport

    def abandon(self) -> None:
        """Drop the connection at once: uvicorn would wait for a peer that does not read."""
        super().abandon()
        self._transport.abort()

    @property
    def backlog(self) -> int:
        return super().backlog + self._transport.get_write_buffer_size()

    def send(self, frame: Frame) -> int:
        protocol = self._protocol
        if protocol.close_sent or not protocol.writable.is_set() or self._transport.is_closing():
            return super().send(frame)
        self._transport.write(frame.form(websocket_bytes))
        # below its high-water mark the peer reads, and asking costs
        return 0 if protocol.writable.is_set() else self.backlog


class UvicornResponse:
    """The connection of an HTTP response. See `streaming.transport.PeerConnection`."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self.backlog_bytes = transport.get_write_buffer_size
        self.abort = transport.abort  # uvicorn would wait for a peer that does not read


def connection_of(send: Send) -> UvicornResponse | None:
    """Return the connection of uvicorn's own `send`; None for any other, or a wrapped one."""
    cycle = getattr(send, "__self__", None)
    if not type(cycle).__module__.startswith(_HTTP_PROTOCOLS):
        return None
    transport: Any = getattr(cycle, "transport", None)
    if not all(hasattr(transport, name) for name in ("abort", "get_write_buffer_size")):
        return None
    return UvicornResponse(transport)


@contextmanager
def close_clients_on_stop(send: Send) -> Iterator[None]:
    """Close the clients when uvicorn begins to stop during this HTTP response.

    uvicorn waits for responses before it ends the lifespan, and a streaming response waits for its
    client. No effect unless `send` is uvicorn's own.
    """
    respond = getattr(getattr(send, "__self__", None), "on_response", None)
    protocol: Any = getattr(respond, "__self__", None)
    if not type(protocol).__module__.startswith(_HTTP_PROTOCOLS):
        yield
        return
    shutdown = protocol.shutdown

    def stop() -> None:
        serving.begin_stop()
        shutdown()

    protocol.shutdown = stop
    try:
        yield
    finally:
        del protocol.shutdown
