"""uvicorn's connections: heads have to come in time, and WebSockets are opened and read at once.

uvicorn has no time-out for heads: a peer that sends nothing, or a byte of a head now and then,
keeps its connection for ever.

uvicorn's HTTP protocol reads a handshake, writes it out again for the package websockets to read,
and that package answers it with some of the same steps once more. Where a handshake for one of our
own paths has its usual form (`plain`), it is read once, and answered at once. So is a message in
one frame. The frames of a connection that began otherwise, and every frame that is not so simple,
are read by the package websockets.

The parser of that package is a generator of the connection that holds it, and waits for bytes for
ever. Where a peer goes without a close frame, the two keep each other, and the collector of a
process that serves runs rarely.

uvicorn makes connections of classes that its configuration names; while the lifespan starts, they
can still be replaced by subclasses.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from realtime.transports.asgi import Event, Scope, Send
from realtime.transports.handshake import HEAD_TIMEOUT
from realtime.transports.servers.plain import (
    PlainHandshake,
    are_frames,
    plain_events,
    plain_handshake,
)
from realtime.transports.servers.uvicorn import PROTOCOL

_websockets: Any = None
with suppress(ImportError):  # then uvicorn has no such WebSockets
    _websockets = importlib.import_module("websockets.protocol")

_NEEDED = (
    *("app_state", "asgi_version", "client", "close_sent", "conn", "connections"),
    *("default_headers", "disconnected", "handshake_complete", "handshake_initiated", "logger"),
    *("loop", "on_task_complete", "queue", "read_paused", "root_path", "run_asgi", "scheme"),
    *("server", "start_keepalive", "tasks", "transport"),
)
"""What our protocol uses of uvicorn's."""

_NEEDED_OF_CONNECTION = ("current_size", "events", "max_message_size", "parser", "reader", "state")
"""And of the connection of the package websockets."""

_LIFESPAN = ("uvicorn.lifespan.on", "LifespanOn")
_PROTOCOLS = (
    ("uvicorn.protocols.http.h11_impl", "H11Protocol"),
    ("uvicorn.protocols.http.httptools_impl", "HttpToolsProtocol"),
)
"""Those that keep the last request in `cycle`."""


def install(send: Send, takes: Callable[[str], bool]) -> None:
    """Use our protocols for uvicorn's connections. No effect under other servers.

    Args:
        send: the one of the lifespan, before its startup is complete.
        takes: return whether a path is one of our WebSockets.
    """
    lifespan = getattr(send, "__self__", None)
    if _name_of(type(lifespan)) != _LIFESPAN:
        return
    config: Any = getattr(lifespan, "config", None)
    http: Any = getattr(config, "http_protocol_class", None)
    if _name_of(http) in _PROTOCOLS:
        config.http_protocol_class = timed(http, takes)
    socket: Any = getattr(config, "ws_protocol_class", None)
    if _name_of(socket) == PROTOCOL:
        # `servers.uvicorn` knows uvicorn's protocol by these names
        names = {"__module__": socket.__module__, "__qualname__": socket.__qualname__}
        config.ws_protocol_class = type(socket.__name__, (FreedSocket, socket), names)


def _name_of(kind: Any) -> tuple[str, str] | None:
    return (kind.__module__, kind.__qualname__) if isinstance(kind, type) else None


def timed(base: type[Any], takes: Callable[[str], bool] = lambda path: False) -> type[Any]:
    """Return a subclass of one of uvicorn's HTTP protocols, with `TimedHeads`."""
    # `servers.uvicorn` knows uvicorn's protocols by their module
    return type(
        f"Timed{base.__name__}",
        (TimedHeads, base),
        {"__module__": base.__module__, "takes": staticmethod(takes)},
    )


class TimedHeads(asyncio.Protocol):
    """What a subclass of one of uvicorn's HTTP protocols adds to it."""

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
    _dropping: asyncio.TimerHandle | None = None
    """Drops the connection if its head does not come; None between requests and during one."""
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
            self._stop_waiting()
        elif (
            self._dropping is None
            and (self.cycle is None or self.cycle.response_complete)
            # after an upgrade the transport belongs to a WebSocket
            and self.transport.get_protocol() is self
        ):
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
        self._stop_waiting()
        self.parser = None
        return True

    def handle_websocket_upgrade(self, *arguments: Any) -> None:
        """Leave the connection to the WebSocket, as uvicorn does, and be freed at once.

        httptools' parser holds this protocol. uvicorn drops it where an HTTP connection is lost,
        and not here, so each WebSocket would leave it all to the garbage collector.
        """
        super().handle_websocket_upgrade(*arguments)  # type: ignore[misc]
        self._stop_waiting()
        self.parser = None

    def connection_lost(self, error: Exception | None) -> None:
        """End the connection as uvicorn does, and the wait for a head."""
        super().connection_lost(error)
        self._stop_waiting()

    def _wait(self) -> None:
        self._dropping = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._dropping is not None:
            self._dropping.cancel()
            self._dropping = None


class FreedSocket(asyncio.Protocol):
    """What a subclass of uvicorn's WebSocket protocol adds to it."""

    conn: Any
    connections: set[Any]
    scope: Scope
    transport: asyncio.Transport
    _fits: bool | None = None
    """What `fits` returned, of the class; None before."""
    _accept: bytes = b""
    """The key of the response, while a plain handshake waits for it."""
    _is_plain = False
    """Whether the handshake was plain, and a frame begins with the next byte."""
    _is_awaited = False
    """Whether the application waits for an event."""

    def fits(self) -> bool:
        """Return whether uvicorn and websockets have everything that `open` needs."""
        kind = type(self)
        if kind._fits is None:
            kind._fits = (
                all(hasattr(self, name) for name in _NEEDED)
                and all(hasattr(self.conn, name) for name in _NEEDED_OF_CONNECTION)
                and isinstance(self.conn.parser, Generator)
                and all(hasattr(_websockets, name) for name in ("OPEN", "Protocol"))
            )
        return kind._fits

    def open(self: Any, handshake: PlainHandshake, http: Any) -> None:
        """Run the application for a plain handshake, as uvicorn does for any.

        Args:
            http: uvicorn's protocol of the connection until now.
        """
        self.transport = http.transport
        self.server, self.client = http.server, http.client
        self.scheme = "wss" if http.scheme == "https" else "ws"
        self.connections.add(self)
        # no handshake follows, but frames
        self.conn.parser.close()
        self.conn.parser = _websockets.Protocol.parse(self.conn)
        next(self.conn.parser)
        self._accept = handshake.accept
        self._is_plain = True
        self.handshake_initiated = True
        self.scope = {
            "type": "websocket",
            "asgi": {"version": self.asgi_version, "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": self.scheme,
            "server": self.server,
            "client": self.client,
            "root_path": self.root_path,
            "path": self.root_path + handshake.path,
            "raw_path": (self.root_path + handshake.path).encode("ascii"),
            "query_string": handshake.query,
            "headers": list(handshake.headers.items()),
            "subprotocols": handshake.subprotocols,
            "state": self.app_state.copy(),
            "extensions": {"websocket.http.response": {}},
        }
        self.queue.put_nowait({"type": "websocket.connect"})
        task = self.loop.create_task(self.run_asgi())
        task.add_done_callback(self.on_task_complete)
        self.tasks.add(task)

    async def send(self: Any, message: Event) -> None:
        """Send an event as uvicorn does, but accept a plain handshake at once."""
        if self._accept and message["type"] == "websocket.accept" and not self.disconnected:
            self._send_accept(message)
        else:
            await super().send(message)  # type: ignore[misc]

    def _send_accept(self: Any, message: Event) -> None:
        if self.logger.isEnabledFor(logging.INFO):
            address = self.scope["client"]  # that of the client, where it came by a proxy
            client = ":".join(map(str, address)) if address else ""
            query = self.scope["query_string"].decode()
            path = f"{self.scope['path']}?{query}" if query else self.scope["path"]
            self.logger.info('%s - "WebSocket %s" [accepted]', client, path)
        lines = [
            b"HTTP/1.1 101 Switching Protocols",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Accept: " + self._accept,
        ]
        for name, value in [*self.default_headers, *message.get("headers", ())]:
            lines.append(name + b": " + value)
        if subprotocol := message.get("subprotocol"):
            lines.append(b"Sec-WebSocket-Protocol: " + subprotocol.encode("latin-1"))
        self._accept = b""
        if not self.transport.is_closing():
            self.handshake_complete = True
            self.conn.state = _websockets.OPEN
            self.transport.write(b"\r\n".join((*lines, b"", b"")))
            self.start_keepalive()

    def data_received(self: Any, data: bytes) -> None:
        """Take bytes as uvicorn does, but read plain messages at once."""
        conn = self.conn
        if self._is_plain:
            if conn.state is _websockets.OPEN and conn.current_size is None:
                events = plain_events(data, conn.max_message_size)
                if events is not None:
                    self._take(events)
                    return
            # otherwise a part of a frame is left in the parser
            self._is_plain = are_frames(data)
        super().data_received(data)

    def _take(self: Any, events: list[Event]) -> None:
        if self.close_sent:
            return  # as uvicorn: the application has ended
        for event in events:
            self.queue.put_nowait(event)
        # uvicorn pauses for each message, and resumes when the application takes it
        if not self.read_paused and not (self._is_awaited and len(events) == 1):
            self.read_paused = True
            self.transport.pause_reading()
        self._is_awaited = False

    async def receive(self: Any) -> Event:
        """Return the next event as uvicorn does, and note that the application waits for one."""
        if not self._is_plain:
            return await super().receive()  # type: ignore[misc, no-any-return]
        self._is_awaited = self.queue.empty()
        event: Event = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self.transport.resume_reading()
        return event

    def connection_lost(self, error: Exception | None) -> None:
        """End the parser, too: nothing comes any more."""
        super().connection_lost(error)
        parser = getattr(self.conn, "parser", None)
        if isinstance(parser, Generator):
            parser.close()
