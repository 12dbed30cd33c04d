"""uvicorn's HTTP connections: heads have to come in time, and a plain handshake is read at once.

uvicorn has no such time-out: a peer that sends nothing, or a byte of a head now and then, keeps its
connection for ever. uvicorn makes connections of a class that its configuration names; while the
lifespan starts, it can still be replaced by a subclass.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from realtime.transports.asgi import Send
from realtime.transports.handshake import HEAD_TIMEOUT
from realtime.transports.servers.plain import PlainHandshake, plain_handshake

_LIFESPAN = ("uvicorn.lifespan.on", "LifespanOn")
_PROTOCOLS = (
    ("uvicorn.protocols.http.h11_impl", "H11Protocol"),
    ("uvicorn.protocols.http.httptools_impl", "HttpToolsProtocol"),
)
"""Those that keep the last request in `cycle`."""
CHECK_INTERVAL = 1.0
"""Least time between two looks at the heads that have not come."""


def limit_heads(send: Send, takes: Callable[[str], bool]) -> None:
    """Give the heads of requests a time-out. No effect under other servers.

    Args:
        send: the one of the lifespan, before its startup is complete.
        takes: return whether a path is one of our WebSockets.
    """
    config = config_of(send)
    base = getattr(config, "http_protocol_class", None)
    if isinstance(base, type) and (base.__module__, base.__qualname__) in _PROTOCOLS:
        config.http_protocol_class = timed(base, takes)


def config_of(send: Send) -> Any:
    """Return the configuration of uvicorn; None under other servers.

    Args:
        send: the one of the lifespan.
    """
    lifespan = getattr(send, "__self__", None)
    kind = type(lifespan)
    is_uvicorn = (kind.__module__, kind.__qualname__) == _LIFESPAN
    return getattr(lifespan, "config", None) if is_uvicorn else None


def timed(base: type[Any], takes: Callable[[str], bool] = lambda path: False) -> type[Any]:
    """Return a subclass of one of uvicorn's HTTP protocols, with `TimedHeads`."""
    # `servers.uvicorn` knows uvicorn's protocols by their module
    return type(
        f"Timed{base.__name__}",
        (TimedHeads, base),
        {"__module__": base.__module__, "heads": Heads(), "takes": staticmethod(takes)},
    )


class Heads:
    """The heads that have not come, of all connections."""

    def __init__(self) -> None:
        self._awaited: deque[tuple[float, weakref.ref[TimedHeads], object]] = deque()
        """Deadline, connection and head, in the order of their deadlines."""

    def wait(self, protocol: TimedHeads, head: object) -> None:
        """Drop a connection if this head has not come in time."""
        loop = protocol.loop
        self._awaited.append((loop.time() + HEAD_TIMEOUT, weakref.ref(protocol), head))
        if len(self._awaited) == 1:
            loop.call_later(HEAD_TIMEOUT, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._awaited and self._awaited[0][0] <= now:
            _, reference, head = self._awaited.popleft()
            if (protocol := reference()) is not None:
                protocol.drop_without(head)
        if self._awaited:
            loop.call_at(max(self._awaited[0][0], now + CHECK_INTERVAL), self._check, loop)


class TimedHeads(asyncio.Protocol):
    """What a subclass of one of uvicorn's HTTP protocols adds to it."""

    heads: Heads
    takes: Callable[[str], bool]
    """Whether a path is one of our WebSockets."""
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any = None
    """The last request whose head has come; None before the first one."""
    parser: Any = None
    """httptools' parser, if uvicorn uses it."""
    _cycle: Any = None
    """`cycle` before the bytes that came last."""
    _head: object = None
    """The head that is awaited; None between requests and during one."""
    _is_new = True
    """Whether nothing has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes as uvicorn does."""
        if self._is_new:
            self._is_new = False
            if (handshake := plain_handshake(data)) is not None and self._opens(handshake):
                return
        super().data_received(data)
        if self.cycle is not self._cycle:
            self._cycle = self.cycle
            self._head = None
        elif self._head is None and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def _opens(self: Any, handshake: PlainHandshake) -> bool:
        """Open a WebSocket, if the handshake is for one of ours. Return whether it was."""
        kind = self.ws_protocol_class
        if not hasattr(kind, "fits") or not self.takes(handshake.path):
            return False
        socket = kind(config=self.config, server_state=self.server_state, app_state=self.app_state)
        if not socket.fits():
            return False
        self.connections.discard(self)
        socket.open(handshake, self)
        self.transport.set_protocol(socket)
        self._head = None
        self.parser = None
        return True

    def handle_websocket_upgrade(self, *arguments: Any) -> None:
        """Leave the connection to the WebSocket, as uvicorn does, and be freed at once.

        httptools' parser holds this protocol. uvicorn drops it where an HTTP connection is lost,
        and not here, so each WebSocket would leave it all to the garbage collector.
        """
        super().handle_websocket_upgrade(*arguments)  # type: ignore[misc]
        self.parser = None

    def _wait(self) -> None:
        self._head = object()
        self.heads.wait(self, self._head)

    def drop_without(self, head: object) -> None:
        """Drop the connection if it is still waiting for this head."""
        # after an upgrade the transport belongs to a WebSocket
        if self._head is head and self.transport.get_protocol() is self:
            self.transport.abort()
