"""A channel list on a bench: commands to a real Redis that are counted, held up, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import redis

from realtime.engine.channel_list import MAX_NAMES_PER_STEP, ChannelList, FirstAndLast
from realtime.errors import EngineUnavailable
from realtime.redis.connection import Connection


class Wire:
    """A `ChannelSet` in a real Redis, whose commands are counted, and can be held up or refused."""

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection = connection
        self._key = key
        self.commands: list[str] = []
        self.reported: list[tuple[str, bool]] = []
        """Names that were reported, and whether they were added."""
        self.open = asyncio.Event()
        self.open.set()
        self.broken = False
        self.breaks_after: int | None = None
        """Commands until it breaks; None: it does not."""

    async def _run(self, *command: Any) -> Any:
        self.commands.append(command[0].decode())
        await self.open.wait()
        if self.breaks_after is not None:
            self.breaks_after -= 1
            self.broken = self.broken or self.breaks_after < 0
        if self.broken:
            raise EngineUnavailable("the wire is broken")
        return await self._connection.execute(*command)

    async def change(
        self, added: Sequence[str], removed: Sequence[str], *, report: bool
    ) -> FirstAndLast:
        assert len(added) + len(removed) <= MAX_NAMES_PER_STEP
        for command, names in ((b"SADD", added), (b"SREM", removed)):
            if names:
                await self._run(command, self._key, *names)
        if report:
            self.reported += [(name, True) for name in added]
            self.reported += [(name, False) for name in removed]
        return (), ()

    async def size(self) -> int:
        size: int = await self._run(b"SCARD", self._key)
        return size

    async def members(self) -> set[str]:
        cursor, names = await self._run(b"SSCAN", self._key, b"0", b"COUNT", 1000)
        assert cursor == b"0"
        return {name.decode() for name in names}


class ChannelListBench:
    """A channel list, the wire it uses, and what Redis has."""

    def __init__(self, wire: Wire, client: redis.Redis, key: str) -> None:
        self.wire = wire
        self.client = client
        self.key = key
        self.channel_list = ChannelList()
        self.channel_list.open(wire, lambda first, last: None)

    def names(self) -> set[str]:
        """The names in Redis."""
        return {name.decode() for name in self.client.smembers(self.key) if isinstance(name, bytes)}
