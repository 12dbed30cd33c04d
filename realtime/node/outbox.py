"""Outbox: what waits to be sent to one client, and the flusher that empties all of them.

    push ─► outbox.append ─► flusher (once per turn of the loop) ─► one frame ─► transport

Messages that come in the same turn leave in one frame, which is what makes a busy node
fast: a frame costs the same however many messages it holds.

What waits is a `Batch`, and batches are shared. A batch knows the batch it becomes with one
more message, so a thousand clients that are sent the same messages walk the same few
batches: per client that is moving one reference, and the joined frame is built once, when
the first of them is flushed.

An outbox is bounded in bytes; past the bound its client is disconnected as slow. While a
transport is busy (its server's `send` waits for the peer) the messages stay here, so no
client waits for another.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Protocol

from realtime.errors import Disconnect
from realtime.protocol.frames import Frame

logger = logging.getLogger("realtime.outbox")


class Batch:
    """Messages that wait, in order: an earlier batch and one more message. Shared by outboxes."""

    __slots__ = ("_before", "_frame", "following", "message", "size")

    def __init__(self, before: Batch | None, message: bytes) -> None:
        self._before = before
        self.message = message
        self._frame: Frame | None = None
        self.size: int = len(message) + (0 if before is None else before.size)
        """Bytes of all messages."""
        self.following: Batch | None = None
        """The batch made of this one last, for the next outbox that is sent the same message.

        The flusher clears it, because it makes a cycle.
        """

    def frame(self, binary: bool) -> Frame:
        """All messages in one frame; built once."""
        if self._frame is None:
            messages: list[bytes] = []
            batch: Batch | None = self
            while batch is not None:
                messages.append(batch.message)
                batch = batch._before
            messages.reverse()
            self._frame = Frame(b"".join(messages), binary)
        return self._frame


class Transport(Protocol):
    """Carries frames to the peer of one client."""

    name: str
    """"websocket" or "sockjs"."""

    @property
    def ready(self) -> bool:
        """Whether `send` may be called: the server has taken the frame before."""
        ...

    def send(self, frame: Frame) -> int:
        """Send a frame without waiting.

        Returns:
            Bytes that the server buffers because the peer has not read them; 0 if unknown.
        """
        ...

    async def close(self, disconnect: Disconnect) -> None:
        """Close the connection with this code and advice. Returns in bounded time."""
        ...

    def closed(self) -> None:
        """Send nothing more: the connection is lost."""
        ...


class Outbox:
    """The waiting messages of one client, each with its own framing."""

    __slots__ = ("_batch", "_binary", "_flusher", "_limit", "_overflow", "_queued", "_transport")

    def __init__(
        self,
        transport: Transport,
        flusher: Flusher,
        *,
        binary: bool,
        limit_bytes: int,
        overflow: Callable[[], None],
    ) -> None:
        """`limit_bytes`: 0 for no limit. `overflow` is called when it is passed."""
        self._transport = transport
        self._flusher = flusher
        self._binary = binary
        self._limit = limit_bytes or sys.maxsize
        self._overflow: Callable[[], None] | None = overflow
        self._batch = flusher.empty
        self._queued = False

    def append(self, message: bytes) -> None:
        """Queue one encoded message; it leaves in this turn of the loop if it can."""
        batch = self._batch.following
        if batch is None or batch.message is not message:
            batch = self._flusher.add(self._batch, message)
        self._batch = batch
        if not self._queued:
            self._queued = True
            self._flusher.queue(self)
        if batch.size > self._limit:
            self._overrun()

    def ready(self) -> None:
        """The transport can send again."""
        if not self._queued:
            self._queued = True
            self._flusher.queue(self)

    def flush(self) -> None:
        """Send everything in one frame, if the transport can."""
        self._queued = False
        batch = self._batch
        if batch.size and self._transport.ready:
            self._batch = self._flusher.empty
            if self._transport.send(batch.frame(self._binary)) > self._limit:
                self._overrun()

    def close(self) -> None:
        """Drop what waits and whatever comes, and let go of the client."""
        self._batch = self._flusher.empty
        self._limit = 0
        self._overflow = None

    def _overrun(self) -> None:
        overflow = self._overflow
        # whoever gets a later publication never asks for those before it: nothing follows
        self.close()
        if overflow is not None:
            overflow()


class Flusher:
    """Empties the outboxes of a node, at most once per turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Outbox] = []
        self._followed: list[Batch] = []
        self.empty = Batch(None, b"")
        """The batch of an outbox in which nothing waits."""

    def add(self, batch: Batch, message: bytes) -> Batch:
        """The batch that `batch` becomes with one more message; remembered until the flush."""
        following = Batch(None if batch is self.empty else batch, message)
        batch.following = following
        self._followed.append(batch)
        return following

    def queue(self, outbox: Outbox) -> None:
        """Flush this outbox in this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(outbox)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        followed, self._followed = self._followed, []
        for outbox in waiting:
            try:
                outbox.flush()
            except Exception:  # what goes wrong for one client must not reach the others
                logger.exception("An outbox could not be flushed")
        for batch in followed:
            batch.following = None
