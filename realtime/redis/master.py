"""Master: the server that the Sentinels name, and the links of one event loop to it.

    open ──► the Sentinels are asked ──► a link to the server that they name
    each second, and with each open: they name another server
         ──► `on_moved` ──► all links are lost

In a planned failover the old master goes on to accept commands for ten seconds, and drops them in
the end. So the links leave it together, and only after `on_moved`: until then nothing of this event
loop has seen the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from realtime.errors import EngineUnavailable
from realtime.redis.hosts import NAME_UNKNOWN, Host, Place, Timeouts, master_place
from realtime.redis.link import L, Link, encode

logger = logging.getLogger("realtime.redis")

MASTER_CHECK_INTERVAL = 1.0
"""Seconds between two questions to the Sentinels where the master is."""

OnMoved = Callable[
    [AbstractAsyncContextManager[Link], AbstractAsyncContextManager[Link]], Awaitable[None]
]
"""Called with what opens a link to the new master, and one to the old one.

May raise EngineUnavailable.
"""


class Master:
    """See the module. Where the host has no Sentinels, it never moves."""

    def __init__(self, host: Host, timeouts: Timeouts, on_moved: OnMoved | None = None) -> None:
        self._host = host
        self._timeouts = timeouts
        self._on_moved = on_moved
        self._place: Place | None = None
        """That the Sentinels named last."""
        self._links: set[Link] = set()
        self._watch: asyncio.Task[None] | None = None
        """As long as there are links."""
        self._order = asyncio.Lock()

    async def open(self, kind: type[L]) -> L:
        """Return a link that is connected and authenticated.

        Raises:
            EngineUnavailable: Redis, or the Sentinels, cannot be reached within the time-out, or
                refuse.
        """
        if not self._host.sentinels:
            return await kind.open(self._host, self._timeouts)
        deadline = asyncio.get_running_loop().time() + self._timeouts.connect
        place = await self._find()
        link = await kind.open(self._host, self._timeouts, place, deadline)
        if place != self._place:
            link.abort(MOVED)
        self._links.add(link)
        link.gone.add_done_callback(lambda _: self._forget(link))
        if self._watch is None:
            self._watch = asyncio.create_task(self._find_again())
        return link

    def _forget(self, link: Link) -> None:
        self._links.discard(link)
        if not self._links and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _find_again(self) -> None:
        while True:
            await asyncio.sleep(MASTER_CHECK_INTERVAL)
            with contextlib.suppress(EngineUnavailable):  # it may be well without Sentinels
                await self._find()

    async def _find(self) -> Place:
        async with self._order:
            place = await _find_master(self._host, self._timeouts.connect)
            before, self._place = self._place, place
            if before not in (None, place):
                assert before is not None
                await self._leave(before, place)
            return place

    async def _leave(self, old: Place, new: Place) -> None:
        links = list(self._links)
        try:
            if self._on_moved is not None:
                async with asyncio.timeout(self._timeouts.connect):
                    await self._on_moved(self._at(new), self._at(old))
        except (EngineUnavailable, TimeoutError) as error:
            logger.warning(
                "The Sentinels of %s name another master, and the old one could not be sealed: %s;"
                " what it still accepts is lost",
                self._host.label,
                str(error) or "no answer in time",
            )
        finally:
            for link in links:
                link.abort(MOVED)

    @asynccontextmanager
    async def _at(self, place: Place) -> AsyncIterator[Link]:
        link = await Link.open(self._host, self._timeouts, place)
        try:
            yield link
        finally:
            await link.close("closed here")


MOVED = "the Sentinels name another master"


async def _find_master(host: Host, timeout: float) -> Place:
    """Ask the Sentinels for the place of the master.

    They are always asked in the same order: during a failover the first one may answer
    differently from one call to the next.

    Raises:
        EngineUnavailable: no Sentinel answered within `timeout` seconds, or none knows it.
    """
    share = host.sentinel_timeout(timeout)
    reasons = []
    for sentinel in host.sentinels:
        try:
            async with asyncio.timeout(share):
                link = await Link.open(sentinel, Timeouts(share, share))
                try:
                    reply = await link.send(encode(host.master_query()))
                finally:
                    await link.close("closed here")
        except TimeoutError:
            reply = sentinel.unavailable(f"no answer within {share:g} s")
        except EngineUnavailable as error:
            reply = error
        if (place := master_place(reply)) is not None:
            return place
        if not isinstance(reply, EngineUnavailable):
            reply = sentinel.unavailable(NAME_UNKNOWN)
        reasons.append(str(reply))
    raise host.no_master(reasons)
