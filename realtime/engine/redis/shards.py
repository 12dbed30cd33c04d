"""Shards: round trips to the Redis servers of the service.

Everything of one channel belongs to one shard: its stream, its presence, its group in the channel
layer. What belongs to the service as a whole is on the shard of the control stream.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from realtime.engine.base import Affects
from realtime.engine.redis import records
from realtime.engine.redis.carriers import Carrier
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import Message, Step
from realtime.engine.redis.scripts import ADD_PRESENCE, PRESENCE
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName
from realtime.redis.script import Script

ROUND_TRIPS = 3
"""Number of PINGs to each shard; their median counts."""

MAX_ENTRIES_PER_STEP = 200
"""Entries written by one script. Redis runs nothing else meanwhile."""


class Shards:
    """The shards of one service. All coroutines raise EngineUnavailable."""

    def __init__(self, carrier: Carrier, prefix: str) -> None:
        """
        Args:
            carrier: reaches Redis.
            prefix: begins the name of every key.
        """
        self.keys = Keys(prefix)
        self._carrier = carrier
        self._layer = carrier.layer

    def affected_by(self, shard: int) -> Affects:
        """Return what tells whether a channel belongs to a shard."""
        if len(self._layer.hosts) == 1:
            return lambda channel: True
        return lambda channel: self._shard(channel) == shard

    async def run(
        self,
        channel: ChannelName,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[str | bytes | int] = (),
    ) -> Any:
        """Run a script on the shard of a channel.

        Returns:
            What the head of the script says, with bytes for strings.
        """
        return await self._carrier.take(Step(self._shard(channel), script, keys, arguments))

    async def command(self, channel: ChannelName, *command: str | bytes | int) -> Any:
        """Run a command on the shard of a channel, and return the reply of Redis."""
        return await self._carrier.take(Step(self._shard(channel), None, (), command))

    async def round_trip(self) -> float:
        """Return the seconds that a round trip to the slowest shard takes."""
        return max([await self._round_trip(shard) for shard in range(len(self._layer.hosts))])

    async def _round_trip(self, shard: int) -> float:
        times = []
        for _ in range(ROUND_TRIPS):
            begun = time.perf_counter()
            await self._carrier.take(Step(shard, None, (), (b"PING",)))
            times.append(time.perf_counter() - begun)
        return statistics.median(times)

    def _shard(self, channel: ChannelName) -> int:
        return self._layer.shard(self.keys.group(channel))

    # entries that expire by themselves

    async def add_entries(
        self,
        channel: ChannelName,
        keys: tuple[str, str],
        entries: Sequence[tuple[str, records.Record]],
        lifetime: float,
    ) -> None:
        """Add entries, or refresh them, for `lifetime` seconds. `keys`: entries and expiry."""
        for start in range(0, len(entries), MAX_ENTRIES_PER_STEP):
            arguments: list[str | bytes | int] = [int(lifetime * 1000)]
            for name, record in entries[start : start + MAX_ENTRIES_PER_STEP]:
                arguments += (name, self.pack(record))
            await self.run(channel, ADD_PRESENCE, keys, arguments)

    async def entries(
        self, channel: ChannelName, keys: tuple[str, str]
    ) -> list[tuple[str, records.Record]]:
        """Return the entries that have not expired."""
        reply = await self.run(channel, PRESENCE, keys)
        pairs = zip(reply[::2], reply[1::2], strict=True)
        with decoding("an entry"):
            return [(name.decode(), self.unpack(value)) for name, value in pairs]

    # what is kept in Redis passes the serializer of the layer, which may encrypt it

    def pack(self, record: records.Record) -> bytes:
        packed: bytes = self._layer.serialize({"record": record})
        return packed

    def unpack(self, packed: bytes) -> records.Record:
        record: records.Record = self.unpack_message(packed)["record"]
        return record

    def unpack_message(self, packed: bytes) -> Message:
        return self._layer.deserialize(packed)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Decode values of Redis within this block. `what`: names one of them, for the error.

    Raises:
        EngineUnavailable: no node wrote such a value. Serializers and decoders raise all kinds of
            exceptions then; this is where they end.
    """
    try:
        yield
    except Exception as error:
        raise EngineUnavailable(
            f"Redis has {what} that cannot be decoded ({type(error).__name__})"
        ) from error
