"""uvicorn's WebSockets: opened and read without uvicorn's detours, and freed as soon as they end.

uvicorn's HTTP protocol reads a handshake, writes it out again for the package websockets to read,
and that package answers it with some of the same steps once more. Where a handshake for one of our
own paths has its usual form (`plain`), it is read once, and answered at once. So is a message in
one frame. The frames of a connection that began otherwise, and every frame that is not so simple,
are read by the package websockets.

The parser of that package is a generator of the connection that holds it, and waits for bytes for
ever. Where a peer goes without a close frame, the two keep each other, and the collector of a
process that serves runs rarely.

uvicorn makes WebSockets of a class that its configuration names; while the lifespan starts, it can
still be replaced by a subclass.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from realtime.transports.asgi import Event, Scope, Send
from realtime.transports.servers.plain import PlainHandshake, are_frames, plain_messages
from realtime.transports.servers.uvicorn import PROTOCOL
from realtime.transports.servers.uvicorn_heads import config_of

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
MESSAGE_MAX_BYTES = 64 * 1024
"""Larger messages are not plain where there is no other limit."""

_NEEDED_OF_CONNECTION = ("current_size", "events", "max_message_size", "parser", "reader", "state")
"""And of the connection of the package websockets."""


def free_sockets(send: Send) -> None:
    """Use our protocol for WebSockets. No effect under other servers.

    Args:
        send: the one of the lifespan, before its startup is complete.
    """
    config = config_of(send)
    base = getattr(config, "ws_protocol_class", None)
    if isinstance(base, type) and (base.__module__, base.__qualname__) == PROTOCOL:
        # `servers.uvicorn` knows uvicorn's protocol by these names
        names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
        config.ws_protocol_class = type(base.__name__, (FreedSocket, base), names)


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
                messages = plain_messages(data, conn.max_message_size or MESSAGE_MAX_BYTES)
                if messages is not None:
                    self._take(messages)
                    return
            # otherwise a part of a frame is left in the parser
            self._is_plain = are_frames(data)
        super().data_received(data)

    def _take(self: Any, messages: list[str | bytes]) -> None:
        if self.close_sent:
            return  # as uvicorn: the application has ended
        for message in messages:
            kind = "text" if isinstance(message, str) else "bytes"
            self.queue.put_nowait({"type": "websocket.receive", kind: message})
        # uvicorn pauses for each message, and resumes when the application takes it
        if not self.read_paused and not (self._is_awaited and len(messages) == 1):
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
