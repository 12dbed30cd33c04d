"""Outbox: the messages that wait for one client, and the flusher that sends those of all clients.

    push ─► outbox.append ─► flusher (once per turn of the loop) ─► one frame ─► transport

Messages of the same turn leave in one frame. That makes a busy node fast, because a frame costs
the same however many messages it holds.

An outbox holds a `MessageBatch`, and batches are shared. A batch refers to the batch that it
becomes with one more message. So a thousand clients that get the same messages follow the same few
batches: a message costs each of them one reference, and the frame is built once, when the first of
them is flushed.

An outbox is bounded in bytes, together with what the server buffers; a client whose outbox
overflows is disconnected as slow. While a transport is not ready (its server's `send` waits for the
peer) messages stay here, so no client waits for another.

What recovery sends is no sign of a slow client: a client has it all to read because it was away. So
it has a bound of its own, and `reserve` raises the limit by it until it has left.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Protocol

from realtime.errors import DisconnectSlow
from realtime.protocol.frames import Frame

logger = logging.getLogger("realtime.outbox")


class MessageBatch:
    """Waiting messages in order: an earlier batch and one more message. Shared by outboxes."""

    __slots__ = ("_before", "frame", "message", "next", "size")

    def __init__(self, before: MessageBatch | None, message: bytes) -> None:
        self._before = before
        self.message = message
        self.frame: Frame | None = None
        """All messages in one frame, once `join` has built it."""
        self.size: int = len(message) + (0 if before is None else before.size)
        """Bytes of all messages."""
        self.next: MessageBatch | None = None
        """The last batch made of this one, for other outboxes that get the same message.

        The flusher clears it after each turn, because it closes a reference cycle.
        """

    def join(self, binary: bool, separator: bytes) -> Frame:
        """Build the frame."""
        messages: list[bytes] = []
        batch: MessageBatch | None = self
        while batch is not None:
            messages.append(batch.message)
            batch = batch._before
        messages.reverse()
        self.frame = frame = Frame(separator.join(messages), binary)
        return frame


class Carrier(Protocol):
    """What an outbox needs of a transport."""

    @property
    def ready(self) -> bool:
        """Return whether `send` may be called: the server has taken the frame before."""

    def send(self, frame: Frame) -> int:
        """Send a frame without waiting.

        Returns:
            `backlog`, after this frame.
        """

    @property
    def backlog(self) -> int:
        """Bytes that the server buffers because the peer has not read them; 0 if unknown."""


class Transport(Carrier, Protocol):
    """Carries frames to the peer of one client."""

    name: str
    """"websocket", "sockjs", "http_stream" or "sse"; with "uni_" in front: unidirectional."""
    session: str
    """Secret by which others name the connection: requests beside it, and the server API; "" where
    there is none."""
    ends_with_push: bool
    """Whether a push tells the client why the connection ends, because no close frame does."""

    async def close(self, code: int, reason: str) -> None:
        """Close the connection with this code and reason. Returns in bounded time."""

    def closed(self) -> None:
        """Send nothing more: the connection is lost."""


class _Copying:
    """A carrier that gives the bytes of each frame to `take`, too."""

    __slots__ = ("_take", "carrier")

    def __init__(self, carrier: Carrier, take: Callable[[bytes], object]) -> None:
        self.carrier = carrier
        self._take = take

    @property
    def ready(self) -> bool:
        return self.carrier.ready

    @property
    def backlog(self) -> int:
        return self.carrier.backlog

    def send(self, frame: Frame) -> int:
        self._take(frame.data)
        return self.carrier.send(frame)


@dataclass(slots=True, eq=False, repr=False)
class ClientOutbox:
    """The waiting messages of one client."""

    _transport: Carrier
    _flusher: Flusher
    _: KW_ONLY
    binary: bool
    """Whether frames are binary."""
    separator: bytes = b""
    """Stands between two messages of a frame."""
    limit_bytes: InitVar[int]
    """Unsent bytes after which the client is slow; 0 for no limit."""
    overflow: Callable[[DisconnectSlow], None] | None
    """Called once, when the limit is exceeded: closes the connection."""
    _reserved: int = 0
    _coming: int = 0
    """Bytes of `_reserved` that may not be queued yet."""
    _is_limit_moved: bool = False
    _queued: bool = False
    _most: int = field(init=False)
    _limit: int = field(init=False)
    _batch: MessageBatch = field(init=False)

    def __post_init__(self, limit_bytes: int) -> None:
        self._most = self._limit = limit_bytes or sys.maxsize
        self._batch = self._flusher.empty

    def append(self, message: bytes) -> None:
        """Queue one encoded message, to be sent in this turn of the loop or when possible."""
        batch = self._batch.next
        if batch is None or batch.message is not message:
            batch = self._flusher.add(self._batch, message)
        self._batch = batch
        if not self._queued:
            self._queued = True
            self._flusher.queue(self)
        if batch.size > self._limit:
            self._overrun()

    def copy(self, take: Callable[[bytes], object] | None) -> None:
        """Give the bytes of each frame that leaves to `take`, which never raises; None ends it."""
        if isinstance(self._transport, _Copying):
            self._transport = self._transport.carrier
        if take is not None:
            self._transport = _Copying(self._transport, take)

    def ready(self) -> None:
        """Flush soon: the transport can send again."""
        if self._is_limit_moved:
            self._move_limit(self._transport.backlog)
        if not self._queued:
            self._queued = True
            self._flusher.queue(self)

    def flush(self) -> None:
        """Send everything in one frame, if the transport is ready."""
        self._queued = False
        batch, transport = self._batch, self._transport
        if batch.size and transport.ready:
            self._batch = self._flusher.empty
            backlog = transport.send(batch.frame or batch.join(self.binary, self.separator))
            if backlog or self._is_limit_moved:
                self._coming = 0
                self._move_limit(backlog)

    def close(self) -> None:
        """Drop all messages, also those that are queued later, and the reference to the client.

        Only `append_last` still has an effect.
        """
        self._batch = self._flusher.empty
        self._most = self._limit = self._reserved = 0
        self.overflow = None

    def append_last(self, message: bytes) -> None:
        """Queue the message that says why the connection ends: a slow client gets it, too."""
        self._most = self._limit = sys.maxsize
        self.append(message)

    def reserve(self, size: int, most: int) -> bool:
        """Make room for a part of a message that does not make the client slow.

        The message must be queued in the same turn of the loop.

        Args:
            size: its bytes.
            most: bytes of such messages that may be unsent at a time; 0 for no limit.

        Returns:
            Whether there is room.
        """
        if self._reserved:
            self._move_limit(self._transport.backlog)
        if most and self._reserved + size > most:
            return False
        self._reserved += size
        self._coming += size
        self._limit += size
        self._is_limit_moved = True
        return True

    def fits(self, message: bytes) -> bool:
        """Return whether a message is within the limit if nothing else waits."""
        return len(message) <= self._most or len(message) <= self._limit

    def _move_limit(self, backlog: int) -> None:
        """Set the limit for what waits here, and check it.

        Args:
            backlog: that of the transport, now.
        """
        unsent = backlog + self._batch.size
        # all else that is unsent may be the rest of what was reserved
        self._reserved = min(self._reserved, unsent + self._coming)
        limit = self._most + self._reserved
        # while a transport is not ready, nothing is sent, and its backlog not looked at
        self._limit = limit if self._transport.ready else limit - backlog
        self._is_limit_moved = bool(self._reserved) or self._limit != self._most
        if unsent > limit:
            self._overrun()

    def _overrun(self) -> None:
        overflow = self.overflow
        # Send nothing more: a client that gets a later publication never recovers the dropped ones.
        self.close()
        if overflow is not None:
            overflow(DisconnectSlow())


class Flusher:
    """Empties the outboxes of a node, at most once per turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[ClientOutbox] = []
        self._extended: list[MessageBatch] = []
        """Batches whose `next` is set."""
        self.empty = MessageBatch(None, b"")
        """The batch of an outbox without messages."""

    def add(self, batch: MessageBatch, message: bytes) -> MessageBatch:
        """Return what `batch` becomes with one more message; shared until the flush."""
        extended = MessageBatch(None if batch is self.empty else batch, message)
        batch.next = extended
        self._extended.append(batch)
        return extended

    def queue(self, outbox: ClientOutbox) -> None:
        """Flush this outbox in this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(outbox)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        extended, self._extended = self._extended, []
        for outbox in waiting:
            try:
                outbox.flush()
            except Exception:  # the failure of one client must not reach the others
                logger.exception("Could not flush an outbox")
        for batch in extended:
            batch.next = None
