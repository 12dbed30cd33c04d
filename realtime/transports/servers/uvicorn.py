"""What uvicorn's protocols offer on top of ASGI: ready-made frames, and a word before the end.

Frames only for `--ws websockets-sansio`, whose protocol writes each one straight to the
transport and keeps no state about what was sent; anything else uses plain `send`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from realtime.protocol.frames import Frame, websocket_bytes
from realtime.serving import serving
from realtime.transports.asgi import Send
from realtime.transports.websocket_transport import WebSocketTransport

_PROTOCOL = ("uvicorn.protocols.websockets.websockets_sansio_impl", "WebSocketsSansIOProtocol")
_HTTP_PROTOCOLS = "uvicorn.protocols.http."
_ATTRIBUTES = ("close_sent", "conn", "shutdown", "transport", "writable")


def transport(send: Send, receiving: asyncio.Task[Any]) -> UvicornTransport | None:
    """The transport for uvicorn's own `send`; None for any other, wrapped ones included."""
    protocol = getattr(send, "__self__", None)
    kind = type(protocol)
    if (kind.__module__, kind.__qualname__) != _PROTOCOL:
        return None
    if not all(hasattr(protocol, name) for name in _ATTRIBUTES):
        return None
    return UvicornTransport(send, receiving, protocol)


class UvicornTransport(WebSocketTransport):
    """Writes ready-made frames to uvicorn's transport, and sees what is not read."""

    def __init__(self, send: Send, receiving: asyncio.Task[Any], protocol: Any) -> None:
        super().__init__(send, receiving)
        # uvicorn closes its sockets before the lifespan ends, without a word to the clients;
        # this way they are told, and uvicorn waits for that.
        protocol.shutdown = serving.begin_stop
        self._protocol = protocol
        self._transport: asyncio.WriteTransport = protocol.transport

    def abandon(self) -> None:
        """As any transport, but at once: uvicorn would wait for a peer that does not read."""
        super().abandon()
        self._transport.abort()

    def send(self, frame: Frame) -> int:
        protocol = self._protocol
        if protocol.close_sent or not protocol.writable.is_set() or self._transport.is_closing():
            return super().send(frame)
        self._transport.write(frame.form(websocket_bytes))
        return 0


@contextmanager
def stops_first(send: Send) -> Iterator[None]:
    """During an HTTP response that goes on, tell the clients when uvicorn begins to stop.

    It waits for such responses before the lifespan ends, and they wait for their clients.
    Nothing happens where `send` is not uvicorn's own.
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
