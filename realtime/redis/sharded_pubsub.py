"""ShardedPubSub: publish/subscribe with a Redis Cluster, over one connection for each server.

Each slot that is used has a `PubSub` of its own, with its states and promises, on a part of the
link to its server. When a server goes or comes back, one call reports all of its slots.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from realtime.errors import EngineUnavailable
from realtime.redis.cluster import LoopCluster
from realtime.redis.hosts import Place
from realtime.redis.pubsub import PubSub, log_lost, log_restored, report
from realtime.redis.sharded_link import ShardedLink, SlotPart

logger = logging.getLogger("realtime.redis")

GATHERING_TIME = 0.05
"""Seconds for which slots that are back wait for others: a node reads streams after that."""

MAX_FAILURES = 100
"""Reasons for a failure that are logged in one outage."""

OnPartitions = Callable[[Collection[int]], None]
"""Called with the indexes of slots."""


class ShardedPubSub:
    """See the module. Belongs to the event loop of its cluster."""

    def __init__(
        self,
        cluster: LoopCluster,
        *,
        on_message: Callable[[str, bytes], None],
        on_lost: OnPartitions,
        on_restored: OnPartitions,
    ) -> None:
        """
        Args:
            cluster: knows the servers.
            on_message, on_lost, on_restored: as of `PubSub`, for slots by their index.
        """
        self.cluster = cluster
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_restored = on_restored
        self._links: dict[Place, asyncio.Task[ShardedLink]] = {}
        self._lost: set[int] = set()
        """Slots that are lost, and not yet said to be back."""
        self._unsaid: set[int] = set()
        """Of those, the ones whose loss is to be reported in this turn of the loop."""
        self._back: set[int] = set()
        """Of those, the ones that are back."""
        self._timer: asyncio.TimerHandle | None = None
        self._lost_at = 0.0
        self._reasons: dict[str, None] = {}
        self._failures: set[str] = set()
        """Why there was no connection, since the last time that slots came back."""
        self._closed = False
        cluster.on_loaded = self._leave_other_servers
        self.parts = [SlotPubSub(self, index) for index in range(len(cluster.map.slots))]
        """One for each slot."""

    async def link(self, slot: int) -> ShardedLink:
        """Return the link to the server of a slot, opened if need be.

        Raises:
            EngineUnavailable: the server is not known, or cannot be reached.
        """
        cluster = self.cluster
        if not cluster.map.knows(slot):
            await cluster.load()
        place = cluster.map.places.get(slot)
        if place is None:
            raise cluster.map.unserved(slot)
        opening = self._links.get(place)
        if opening is not None and opening.done() and not _is_good(opening):
            opening = None
        if opening is None:
            opening = self._links[place] = asyncio.create_task(self._open(place))
        try:
            return await asyncio.shield(opening)
        except EngineUnavailable as error:
            cluster.doubt()
            raise EngineUnavailable(str(error)) from None  # each slot its own: tracebacks grow

    async def _open(self, place: Place) -> ShardedLink:
        link = await ShardedLink.open(self.cluster.map.at(place), self.cluster.timeouts)
        link.slots = self.cluster.map
        if link.lost is None:
            link.start(self._receive, self._link_lost)
        return link

    def _receive(self, name: str, data: bytes) -> None:
        try:
            self._on_message(name, data)
        except Exception:  # an invalid message must not stop the others
            logger.exception("A message from Redis could not be handled")

    def _link_lost(self, link: Any) -> None:
        self.cluster.doubt()
        for part in list(link.parts.values()):
            part.abort(str(link.lost))

    def _leave_other_servers(self) -> None:
        """Leave servers that have lost slots: one that is frozen tells nothing of it."""
        for place, opening in self._links.items():
            if opening.done() and _is_good(opening):
                for slot, part in list(opening.result().parts.items()):
                    if self.cluster.map.places.get(slot, place) != place:
                        part.abort("another server has the slot")

    # what slots say

    def lost(self, index: int, reason: str) -> None:
        """Note that a slot is lost. One call reports all that are lost in a turn of the loop."""
        self.cluster.doubt()
        self._back.discard(index)
        self._reasons[reason] = None
        if not self._lost:
            self._lost_at = time.monotonic()
        if index not in self._lost:
            self._lost.add(index)
            if not self._unsaid:
                asyncio.get_running_loop().call_soon(self._say_lost)
            self._unsaid.add(index)

    def restored(self, index: int) -> None:
        """Note that a slot is back. It waits a moment for others."""
        self._back.add(index)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHERING_TIME, self._say_restored)

    def failed(self, reason: str) -> None:
        """Note why there is no connection; logged unless it is known."""
        if reason not in self._failures and len(self._failures) < MAX_FAILURES:
            self._failures.add(reason)
            level = logging.DEBUG if self._lost else logging.WARNING
            logger.log(level, "Redis pub/sub is not connected: %s", reason)

    def _say_lost(self) -> None:
        unsaid, self._unsaid = self._unsaid, set()
        reasons, self._reasons = self._reasons, {}
        if self._closed or not unsaid:
            return
        log_lost(f"{len(unsaid)} of {len(self.parts)} partitions", "; ".join(reasons))
        report(partial(self._on_lost, unsaid))

    def _say_restored(self) -> None:
        self._timer = None
        back, self._back = self._back, set()
        self._lost -= back
        if self._closed or not back:
            return
        self._failures.clear()
        log_restored(f"{len(back)} of {len(self.parts)} partitions", self._lost_at)
        report(partial(self._on_restored, back))

    async def close(self) -> None:
        """Deliver nothing more and close; bounded in time. Waiting callers of `subscribe` fail."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*(part.close() for part in self.parts))
        await asyncio.gather(*(_close(opening) for opening in self._links.values()))


class SlotPubSub(PubSub):
    """The publish/subscribe of one slot: see `PubSub`, whose states it has."""

    def __init__(self, pubsub: ShardedPubSub, index: int) -> None:
        cluster = pubsub.cluster
        super().__init__(
            cluster.map.host,
            cluster.timeouts,
            on_message=lambda name, data: None,  # the link delivers itself
            on_lost=lambda: None,
            on_restored=lambda: pubsub.restored(index),
        )
        self._pubsub = pubsub
        self._index = index
        self._slot = cluster.map.slots[index]

    async def _open_link(self) -> SlotPart:
        return SlotPart(await self._pubsub.link(self._slot), self._slot)

    async def _pause(self, seconds: float) -> None:
        """Wait until another server may have the slot, or as long as that."""
        await asyncio.wait([self._pubsub.cluster.changed], timeout=seconds)

    def _log_failure(self, error: EngineUnavailable, *, exc_info: bool = False) -> None:
        if exc_info:
            super()._log_failure(error, exc_info=exc_info)
        else:
            self._failure = str(error)
            self._pubsub.failed(self._failure)

    def _log_lost(self, reason: str) -> None:
        self._pubsub.lost(self._index, reason)

    def _log_restored(self) -> None:
        """The cluster logs it, for many slots together."""


def _is_good(opening: asyncio.Task[ShardedLink]) -> bool:
    if opening.cancelled() or opening.exception() is not None:
        return False
    return opening.result().lost is None


async def _close(opening: asyncio.Task[ShardedLink]) -> None:
    opening.cancel()
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close("closed here")
