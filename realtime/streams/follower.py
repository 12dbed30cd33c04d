"""Following a stream of the engine: reads it whenever something is missing, or may be.

One per recoverable channel and node, so that a gap is filled once for all its clients.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from realtime.engine.base import Store
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.streams.order import Follower, StreamLost

logger = logging.getLogger("realtime.node")

RETRY_DELAY = 0.1
RETRY_DELAY_MAX = 2.0
"""Seconds between attempts to read a stream while the engine fails."""


class Following:
    """Follows one stream: hands on its publications in order, each once."""

    __slots__ = (
        "_channel",
        "_deliver",
        "_follower",
        "_interruption",
        "_lost",
        "_reader",
        "_stopped",
        "_store",
        "interruptions",
    )

    def __init__(
        self,
        store: Store,
        channel: ChannelName,
        deliver: Callable[[Publication], None],
        lost: Callable[[], None],
    ) -> None:
        """
        Args:
            store: has the stream.
            channel: whose stream it is.
            deliver: is handed the publications, in order.
            lost: is called when the stream does not continue; it is followed anew then.
        """
        self._store = store
        self._channel = channel
        self._deliver = deliver
        self._lost = lost
        self._follower = Follower()
        self._reader: asyncio.Task[None] | None = None
        self._interruption: asyncio.Future[None] | None = None
        """Done when publications arrive again; None when they do."""
        self.interruptions = 0
        """How often publications may have been lost."""
        self._stopped = False

    @property
    def position(self) -> StreamPosition | None:
        """Of the last publication handed on; None until `start` is through."""
        return self._follower.position

    async def start(self) -> None:
        """Find out where the stream is; what arrives meanwhile waits.

        Raises:
            Exception: the engine failed.
        """
        self._follower.ask()
        self._hand_on(self._follower.start(await self._store.position(self._channel)))

    def arrived(self, publication: Publication, position: StreamPosition) -> None:
        """A publication arrived from the engine."""
        self._hand_on(self._follower.arrived(publication, position))

    def interrupt(self) -> None:
        """Publications may be lost from now on: those that arrive wait for `resume`."""
        self.interruptions += 1
        self._follower.doubt()
        if self._interruption is None:
            self._interruption = asyncio.get_running_loop().create_future()

    async def resume(self, interruption: int) -> None:
        """Publications arrive again; returns when those that were missed are handed on.

        `interruption`: the value of `interruptions` then; nothing happens when there was
        another one since.
        """
        if self._stopped or self._interruption is None or interruption != self.interruptions:
            return
        self._interruption.set_result(None)
        self._interruption = None
        self._follower.doubt()
        if self.position is not None:  # otherwise `start` sees to it
            await asyncio.shield(self._settle())

    async def check(self) -> None:
        """Compare the position with the engine's, and read what is missing.

        That takes as long as an interruption does; a caller that does not wait for the end of it
        loses nothing. Where the stream is being read already, there is nothing to compare.

        Raises:
            Exception: the engine failed.
        """
        if self._reader is None and await self._store.position(self._channel) != self.position:
            await self.reach(None)

    async def reach(self, position: StreamPosition | None) -> None:
        """Return when everything up to a position was handed on; None: up to now.

        Nothing is promised when the stream has lost that position meanwhile.
        """
        if position is not None and self._has(position):
            return
        self._follower.doubt()
        await asyncio.shield(self._settle())

    def _has(self, position: StreamPosition) -> bool:
        own = self.position
        return own is not None and position.epoch == own.epoch and position.offset <= own.offset

    def stop(self) -> None:
        """Hand on nothing more."""
        self._stopped = True
        if self._interruption is not None:
            self._interruption.cancel()
        if self._reader is not None:
            self._reader.cancel()
        self._deliver = self._lost = _nothing

    def _settle(self) -> asyncio.Future[None]:
        """Read what is missing; done when nothing is. Tries until it succeeds, or `stop`."""
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read())
        return self._reader

    def _hand_on(self, publications: list[Publication]) -> None:
        for publication in publications:
            self._deliver(publication)
        if self._stopped:
            return
        if self._follower.behind and self.position is not None and self._reader is None:
            self._settle()

    async def _read(self) -> None:
        delay = RETRY_DELAY
        try:
            while self._follower.behind:
                if self._interruption is not None:
                    await asyncio.shield(self._interruption)
                try:
                    history = await self._store.history(self._channel, self._follower.ask())
                except Exception as error:  # whatever it is: nobody else would read on
                    logger.warning("The stream of %r cannot be read yet: %s", self._channel, error)
                    await asyncio.sleep(delay * random.uniform(0.5, 1))
                    delay = min(2 * delay, RETRY_DELAY_MAX)
                    continue
                try:
                    publications = self._follower.read(history)
                except StreamLost as lost:
                    await self._begin_anew(lost.renew)
                else:
                    for publication in publications:
                        self._deliver(publication)
        finally:
            self._reader = None

    async def _begin_anew(self, renew: bool) -> None:
        """Tell whom it concerns that the stream is lost, and follow it as it is now."""
        own = self.position
        try:
            self._follower.ask()
            if renew and own is not None:
                await self._store.renew_epoch(self._channel, own.epoch)
            position = await self._store.position(self._channel)
        except Exception as error:  # as above
            logger.warning("The stream of %r cannot be read yet: %s", self._channel, error)
            await asyncio.sleep(RETRY_DELAY_MAX)
            return  # and read again
        self._lost()
        self._hand_on(self._follower.start(position))


def _nothing(*_: object) -> None:
    """Stands in when nobody listens any more."""
