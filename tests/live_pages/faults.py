"""Faults of a site with live lists: what is killed, stopped, frozen or cut, in an order by a seed.

A fault begins every few seconds, at a target that has no other one: Redis may be frozen while a
server starts. Direct publications are lost while Redis is away, and
when a writer is killed after its commit: with `losses` these faults are played for them, too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.live_pages.site import Site
from tests.tcp_proxy import TcpProxy

Fault = Callable[[int, float], Awaitable[bool]]
"""Called with the number of its target and seconds; returns whether it happened."""
SHORT = (1.0, 5.0)
LONG = (8.0, 15.0)
"""Seconds; connections that are refused for so long come back after the end of the history."""


class Faults:
    """See the module. `counts` has the faults that happened, by kind."""

    def __init__(
        self,
        site: Site,
        proxies: Sequence[TcpProxy],
        chance: random.Random,
        *,
        losses: bool,
    ) -> None:
        self._site = site
        self._proxies = proxies
        self._chance = chance
        self.losses = losses
        self._busy: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._kinds: list[tuple[str, tuple[str, ...], tuple[float, float], Fault]] = [
            ("connections cut", ("proxy {}",), SHORT, self._cut),
            ("connections refused", ("proxy {}",), SHORT, self._refuse),
            ("connections refused for long", ("proxy {}",), LONG, self._refuse),
            ("server killed", ("server {}",), SHORT, self._kill_server),
            ("server stopped", ("server {}",), SHORT, self._stop_server),
            ("server frozen", ("server {}",), SHORT, self._freeze_server),
        ]
        if site.durable:
            both = ("server 0", "server 1")
            self._kinds += [
                ("relay killed before it published", both, SHORT, self._spring("_publish")),
                ("relay killed after it published", both, SHORT, self._spring("_settle")),
            ]
        if site.durable or losses:
            writers = ("writer",)
            self._kinds += [
                ("writer killed", writers, SHORT, self._kill_writer),
                ("writer killed after its commit", writers, SHORT, self._spring("commit")),
                ("Redis killed", ("Redis",), SHORT, self._kill_redis),
                ("Redis stopped", ("Redis",), SHORT, self._stop_redis),
                ("Redis frozen", ("Redis",), SHORT, self._freeze_redis),
            ]

    async def play(self, until: float, pauses: tuple[float, float]) -> None:
        """Let a fault begin after each pause; returns when all are over."""
        async with asyncio.TaskGroup() as tasks:
            while (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(left, self._chance.uniform(*pauses)))
                kind, targets, seconds, fault = self._chance.choice(self._kinds)
                number = self._chance.randrange(2)
                taken = {each.format(number) for each in targets}
                length = self._chance.uniform(*seconds)
                if not taken & self._busy and time.monotonic() < until:
                    self._busy |= taken
                    tasks.create_task(self._run(kind, taken, fault, number, length))

    async def _run(
        self, kind: str, taken: set[str], fault: Fault, number: int, seconds: float
    ) -> None:
        try:
            self.counts[kind] += await fault(number, seconds)
        finally:
            self._busy -= taken

    # connections

    async def _cut(self, number: int, seconds: float) -> bool:
        self._proxies[number].cut()
        return True

    async def _refuse(self, number: int, seconds: float) -> bool:
        self._proxies[number].refuse()
        await asyncio.sleep(seconds)
        self._proxies[number].allow()
        return True

    # servers, and the relays in them

    async def _kill_server(self, number: int, seconds: float) -> bool:
        await asyncio.to_thread(self._site.kill, number)
        return True

    async def _stop_server(self, number: int, seconds: float) -> bool:
        await asyncio.to_thread(self._site.terminate, number)
        return True

    async def _freeze_server(self, number: int, seconds: float) -> bool:
        self._site.freeze(number)
        await asyncio.sleep(seconds)
        self._site.resume(number)
        return True

    def _spring(self, place: str) -> Fault:
        async def spring(number: int, seconds: float) -> bool:
            return await asyncio.to_thread(self._site.spring, place)

        return spring

    async def _kill_writer(self, number: int, seconds: float) -> bool:
        writer = self._site.writers[number % len(self._site.writers)]
        killed = await asyncio.to_thread(writer.kill)
        if killed:
            writer.follow()
        return killed

    # Redis

    async def _kill_redis(self, number: int, seconds: float) -> bool:
        await asyncio.to_thread(self._site.redis.kill)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._site.redis.start)
        return True

    async def _stop_redis(self, number: int, seconds: float) -> bool:
        await asyncio.to_thread(self._site.redis.restart)
        return True

    async def _freeze_redis(self, number: int, seconds: float) -> bool:
        with self._site.redis.frozen():
            await asyncio.sleep(seconds)
        return True
