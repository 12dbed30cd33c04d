"""Outbox: what waits to be sent to one client, and the flusher that empties all of them.

    push ─► outbox.append ─► flusher (once per turn of the loop) ─► one frame ─► transport

Messages that come in the same turn leave in one frame, which is what makes a busy node
fast: a frame costs the same however many messages it holds. Clients whose outboxes hold
the same messages share one frame, built once.

An outbox is bounded in bytes; past the bound its client is disconnected as slow. While a
transport is busy (its server's `send` waits for the peer) the messages stay here, so no
client waits for another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol


class Frame:
    """One outgoing WebSocket frame, with the forms different servers want it in."""

    __slots__ = ("_asgi", "binary", "data")

    def __init__(self, data: bytes, binary: bool) -> None:
        self.data = data
        self.binary = binary
        self._asgi: dict[str, Any] | None = None

    @property
    def asgi(self) -> dict[str, Any]:
        """The ASGI event that sends this frame; built once, for all clients."""
        if self._asgi is None:
            if self.binary:
                self._asgi = {"type": "websocket.send", "bytes": self.data}
            else:
                self._asgi = {"type": "websocket.send", "text": self.data.decode()}
        return self._asgi


class Sender(Protocol):
    """What an outbox needs of a transport."""

    ready: bool
    """Whether `send` may be called: the frame before has left."""

    def send(self, frame: Frame) -> int:
        """Send without waiting; returns how many bytes the server still buffers, 0 if unknown."""
        ...


class Outbox:
    """The waiting messages of one client, each with its own framing."""

    __slots__ = (
        "_binary",
        "_flusher",
        "_limit",
        "_messages",
        "_overflow",
        "_queued",
        "_sender",
        "_size",
    )

    def __init__(
        self,
        sender: Sender,
        flusher: Flusher,
        *,
        binary: bool,
        limit_bytes: int,
        overflow: Callable[[], None],
    ) -> None:
        self._sender = sender
        self._flusher = flusher
        self._binary = binary
        self._limit = limit_bytes
        self._overflow = overflow
        self._messages: list[bytes] = []
        self._size = 0
        self._queued = False

    def append(self, message: bytes) -> None:
        """Queue one encoded message; it leaves in this turn of the loop if it can."""
        self._messages.append(message)
        self._size += len(message)
        if self._size > self._limit > 0:
            self._messages.clear()
            self._size = 0
            self._overflow()
        elif not self._queued:
            self._queued = True
            self._flusher.add(self)

    def ready(self) -> None:
        """The transport can send again."""
        if self._messages and not self._queued:
            self._queued = True
            self._flusher.add(self)

    def flush(self, frames: dict[object, Frame]) -> None:
        """Send everything in one frame. `frames` shares frames between outboxes."""
        self._queued = False
        messages = self._messages
        if not messages or not self._sender.ready:
            return
        key = messages[0] if len(messages) == 1 else tuple(messages)
        frame = frames.get(key)
        if frame is None or frame.binary is not self._binary:
            frame = frames[key] = Frame(b"".join(messages), self._binary)
        messages.clear()
        self._size = 0
        if self._sender.send(frame) > self._limit > 0:
            self._overflow()

    def clear(self) -> None:
        """Drop what waits, and let go of everything else."""
        self._messages.clear()
        self._size = 0


class Flusher:
    """Empties the outboxes of a node, at most once per turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Outbox] = []

    def add(self, outbox: Outbox) -> None:
        """Flush this outbox in this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(outbox)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        frames: dict[object, Frame] = {}
        for outbox in waiting:
            outbox.flush(frames)
