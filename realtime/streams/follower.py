"""Follower of one stream of the engine: reads it whenever something is missing, or may be.

There is one for each recoverable channel of a node, so that a gap is filled once for all its
subscribers. What is delivered when is decided by `StreamOrder`; this is its I/O: one task reads
while the order is behind, tries again while the engine fails, and waits while it is interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from realtime.engine.base import History, Streams
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.streams.order import StreamLost, StreamOrder
from realtime.streams.retries import Retries


class StreamFollower:
    """Delivers the publications of one stream in order, each once."""

    __slots__ = (
        "_channel",
        "_deliver",
        "_interruption",
        "_lost",
        "_order",
        "_reader",
        "_retries",
        "_stopped",
        "_streams",
        "interruptions",
    )

    def __init__(
        self,
        streams: Streams,
        channel: ChannelName,
        deliver: Callable[[Publication], None],
        lost: Callable[[], None],
        retries: Retries | None = None,
    ) -> None:
        """
        Args:
            streams: has the stream.
            channel: whose stream it is.
            deliver: called with each publication, in order.
            lost: called when the stream does not continue; it is followed anew then.
            retries: shared with the other streams of the shard; None: this one waits for no other.
        """
        self._streams = streams
        self._channel = channel
        self._deliver = deliver
        self._lost = lost
        self._retries = retries or Retries()
        self._order = StreamOrder()
        self._reader: asyncio.Task[None] | None = None
        self._interruption: asyncio.Future[None] | None = None
        """During an interruption: done at its end."""
        self.interruptions = 0
        """How often delivery was interrupted."""
        self._stopped = False

    @property
    def position(self) -> StreamPosition | None:
        """The position of the last publication delivered; None until `start` has ended."""
        return self._order.position

    async def start(self) -> None:
        """Read the position of the stream, and deliver what comes after it.

        Raises:
            EngineUnavailable: The engine did not answer, or refused.
        """
        self._order.begin_read()
        self._deliver_all(self._order.start(await self._streams.history(self._channel, limit=0)))

    def on_publication(self, publication: Publication, position: StreamPosition) -> None:
        """Take a publication from the engine."""
        # `_deliver_all` written out: this runs for every publication
        for due in self._order.receive(publication, position):
            self._deliver(due)
        if self._order.is_behind:
            self._read_if_started()

    def interrupt(self) -> None:
        """Deliver nothing until `resume`: publications may be lost from now on."""
        self.interruptions += 1
        self._order.suspect_loss()
        if self._interruption is None:
            self._interruption = asyncio.get_running_loop().create_future()

    async def resume(self, interruption: int) -> None:
        """End an interruption, and deliver what was missed in it.

        A follower that was made during the interruption has not seen its beginning. It may have
        missed publications anyway.

        Args:
            interruption: the value of `interruptions`; nothing happens if there was another one
                since.
        """
        if self._stopped or interruption != self.interruptions:
            return
        if self._interruption is not None:
            self._interruption.set_result(None)
            self._interruption = None
        self._order.suspect_loss()
        if self.position is not None:  # otherwise `start` is under way, and reads
            await asyncio.shield(self._read_on())

    async def check(self) -> None:
        """Compare the position with the engine's, and read what is missing.

        That takes as long as an interruption does; a caller may stop waiting and loses nothing.
        Nothing is compared while the stream is being read, or after `stop`.

        Raises:
            EngineUnavailable: The engine did not answer, or refused.
        """
        if self._stopped:
            return
        if self._reader is None and not self._order.is_at(await self._top_to_check()):
            await self.reach(None)

    async def _top_to_check(self) -> History:
        if self.position is not None and self.position.offset == 0:
            # as nothing was published, the engine has to keep the epoch for those who follow it
            (position,) = await self._streams.positions([self._channel])
            return History((), position)
        return await self._streams.history(self._channel, limit=0)

    async def reach(self, position: StreamPosition | None) -> None:
        """Return when everything up to a position was delivered; None: up to now.

        A position that the stream has lost meanwhile is not reached. A follower that was stopped
        reaches nothing more, and returns at once.
        """
        if self.on_advance(position) and self.position is not None:  # `start` reads by itself
            await asyncio.shield(self._read_on())

    def on_advance(self, position: StreamPosition | None) -> bool:
        """Begin to read what is missing, where the stream reaches up to a position.

        Args:
            position: of the stream; None: it reaches further than this follower has got.

        Returns:
            Whether something is missing.
        """
        if self._stopped or (position is not None and self._has(position)):
            return False
        self._order.suspect_loss()
        self._read_if_started()
        return True

    def _has(self, position: StreamPosition) -> bool:
        own = self.position
        return own is not None and position.epoch == own.epoch and position.offset <= own.offset

    def stop(self) -> None:
        """Deliver nothing more, and end the reader."""
        self._stopped = True
        if self._interruption is not None:
            self._interruption.cancel()
        if self._reader is not None:
            self._reader.cancel()
        self._deliver = self._lost = _ignore

    def _deliver_all(self, publications: list[Publication]) -> None:
        for publication in publications:
            self._deliver(publication)
        if self._order.is_behind:
            self._read_if_started()

    def _read_if_started(self) -> None:
        if self.position is not None and not self._stopped:
            self._read_on()

    def _read_on(self) -> asyncio.Future[None]:
        """Return the reader, begun if there is none: it ends when nothing is missing."""
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read())
        return self._reader

    async def _read(self) -> None:
        failures = 0
        try:
            while self._order.is_behind:
                if self._interruption is not None:
                    await asyncio.shield(self._interruption)
                try:
                    async with self._retries.attempt(self._channel, failures):
                        await self._read_once()
                    failures = 0
                except EngineUnavailable:
                    failures += 1
        finally:
            self._reader = None

    async def _read_once(self) -> None:
        history = await self._streams.history(self._channel, self._order.begin_read())
        try:
            publications = self._order.end_read(history)
        except StreamLost as lost:
            await self._begin_anew(lost.renew)
        else:
            for publication in publications:
                self._deliver(publication)

    async def _begin_anew(self, renew: bool) -> None:
        """Report that the stream is lost, and follow it from where it is now."""
        own = self.position
        self._order.begin_read()
        if renew and own is not None:
            await self._streams.renew_epoch(self._channel, own.epoch)
        top = await self._streams.history(self._channel, limit=0)
        self._lost()
        self._deliver_all(self._order.start(top))


def _ignore(*_: object) -> None:
    """Take the place of the callbacks of a follower that was stopped."""
