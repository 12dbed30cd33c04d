"""Listener: a `PubSub` that records messages and changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub import PubSub

TIMEOUT = 60.0


class Listener:
    """What arrived, in order: messages as (name, data), changes as "lost" and "restored"."""

    def __init__(self, host: Host, timeouts: Timeouts, on_message: Callable[[bytes], None]) -> None:
        self.events: list[tuple[str, bytes] | str] = []
        self._changed = asyncio.Event()
        self._check = on_message
        self.subscriptions = PubSub(
            host,
            timeouts,
            on_message=self._message,
            on_lost=lambda: self._keep("lost"),
            on_restored=lambda: self._keep("restored"),
        )
        self.subscribe = self.subscriptions.subscribe
        self.unsubscribe = self.subscriptions.unsubscribe
        self.close = self.subscriptions.close

    async def change(self, name: str, wanted: bool) -> None:
        """Subscribe or unsubscribe."""
        if wanted:
            await self.subscribe(name)
        else:
            self.unsubscribe(name)

    def _message(self, name: str, data: bytes) -> None:
        self._keep((name, data))
        self._check(data)

    def _keep(self, event: tuple[str, bytes] | str) -> None:
        self.events.append(event)
        self._changed.set()

    @property
    def messages(self) -> list[tuple[str, bytes]]:
        return [event for event in self.events if isinstance(event, tuple)]

    @property
    def changes(self) -> list[str]:
        return [event for event in self.events if isinstance(event, str)]

    async def records(self, condition: Callable[[], bool]) -> None:
        """Wait until what arrived makes this true."""
        async with asyncio.timeout(TIMEOUT):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def only_this_task() -> None:
    """Wait until no other task runs on this loop."""
    async with asyncio.timeout(TIMEOUT):
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0.01)
