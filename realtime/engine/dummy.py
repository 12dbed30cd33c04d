"""The dummy engine, for processes without clients: a memory engine in which nothing arrives."""

from __future__ import annotations

import asyncio
from typing import cast

from realtime.engine.base import Outgoing, Published, Store
from realtime.engine.memory import MemoryBroker, MemoryLists, MemoryPresence
from realtime.timers import Timers


class DummyStreams(MemoryBroker):
    def __init__(self, timers: Timers) -> None:
        super().__init__(timers)
        self._epoch = ""  # no position of it is one

    async def publish(self, outgoing: Outgoing) -> Published:
        return Published()


class DummyStore(Store):
    """See `engine.base.Store` for the contract. Any thread may use it."""

    def __init__(self) -> None:
        # where nothing is kept, nothing expires, and no loop is needed
        timers = Timers(cast(asyncio.AbstractEventLoop, None))
        self.broker = DummyStreams(timers)
        self.presence = MemoryPresence(timers)
        self.lists = MemoryLists()
        self.maps = self.broker.maps
