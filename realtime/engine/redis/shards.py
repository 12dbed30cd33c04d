"""Shards: round trips to the Redis servers of the service.

Everything of one channel belongs to one shard: its stream, its presence, its group in the channel
layer. What belongs to the service as a whole is on the shard of the control stream.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import TypeVar

from realtime.engine import entries
from realtime.engine.base import Affects
from realtime.engine.records import Message
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.scripts import ADD_PRESENCE, PRESENCE
from realtime.protocol.messages import ChannelName
from realtime.redis.commands import Argument, Reply, Script, ScriptCall

ROUND_TRIPS = 3
"""Number of PINGs to each shard; their median counts."""

MAX_ENTRIES_PER_STEP = 200
"""Entries written by one script. Redis runs nothing else meanwhile."""

MAX_COUNT = 2**31 - 1
"""More entries than there are of anything, and a number that every Redis takes."""

OTHER_KEYS = "Do all processes have the same encryption keys?"
"""What an entry that cannot be decoded asks."""

R = TypeVar("R")

decoding = partial(entries.decoding, "Redis")


class Shards:
    """The shards of one service. All coroutines raise EngineUnavailable."""

    def __init__(self, redis: RedisBus, prefix: str, *, blocking: bool = False) -> None:
        """
        Args:
            redis: reaches Redis.
            prefix: begins the name of every key.
            blocking: no coroutine suspends, so a thread needs no event loop.
        """
        self.redis = redis
        self.keys = Keys(prefix, redis.partitions)
        self.blocking = blocking
        self.call = redis.call_blocking if blocking else redis.call
        self.call_many = redis.call_many_blocking if blocking else redis.call_many
        self.pack, self.unpack = redis.serialize, redis.deserialize
        redis.seal = self.keys.seal

    def affected_by(self, shards: Collection[int]) -> Affects:
        """Return a function that returns whether a channel belongs to one of these shards."""
        if self.redis.servers.count == 1:
            return lambda channel: True
        return lambda channel: self.shard(channel) in shards

    async def run(
        self,
        channel: ChannelName,
        script: Script[R],
        keys: Sequence[str],
        arguments: Sequence[Argument] = (),
    ) -> R:
        """Run a script on the shard of a channel and return its reply.

        Args:
            channel: decides about the shard.
            script: see `scripts`.
            keys: the keys that the script names KEYS.
            arguments: what the script names ARGV.
        """
        call = ScriptCall(script, keys, arguments)
        reply: R = await self.call(self.shard(channel), call)
        return reply

    async def command(self, channel: ChannelName, *command: Argument) -> Reply:
        """Run a command on the shard of a channel and return the reply of Redis.

        Args:
            channel: decides about the shard.
            command: the name of the command and its arguments.
        """
        return await self.call(self.shard(channel), command)

    async def round_trip(self) -> float:
        """Return the seconds that a round trip to the slowest server takes."""
        shards = self.redis.servers.representatives()
        return max([await self._round_trip(shard) for shard in shards])

    async def _round_trip(self, shard: int) -> float:
        times = []
        for _ in range(ROUND_TRIPS):
            begun = time.perf_counter()
            await self.call(shard, (b"PING",))
            times.append(time.perf_counter() - begun)
        return statistics.median(times)

    def shard(self, channel: ChannelName) -> int:
        """Return the number of the shard that keeps a channel."""
        return self.redis.shard(self.keys.group(channel))

    # entries that expire by themselves

    async def add_entries(
        self,
        channel: ChannelName,
        keys: tuple[str, str],
        entries: Sequence[tuple[str, Message]],
        lifetime: float,
    ) -> None:
        """Add entries, or refresh them, for `lifetime` seconds. `keys`: entries and expiry."""
        for start in range(0, len(entries), MAX_ENTRIES_PER_STEP):
            arguments: list[Argument] = [int(lifetime * 1000)]
            for name, message in entries[start : start + MAX_ENTRIES_PER_STEP]:
                arguments += (name, self.pack(message))
            await self.run(channel, ADD_PRESENCE, keys, arguments)

    async def packed_entries(
        self, channel: ChannelName, keys: tuple[str, str]
    ) -> list[tuple[bytes, bytes]]:
        """Return the entries that have not expired, as Redis has them."""
        reply = await self.run(channel, PRESENCE, keys)
        with decoding("an entry"):
            return list(zip(reply[::2], reply[1::2], strict=True))

    # values pass the serializer of the layer, which may encrypt them
