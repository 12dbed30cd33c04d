"""Positions of many channels: one round trip for each shard, counted by Redis itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from realtime.engine.redis.bus import RedisBlockingBus
from realtime.engine.redis.engine import RedisStore
from realtime.protocol.messages import StreamPosition
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import SHARDS, RedisBench
from tests.redis_server import RedisServer

CHANNELS = 3
"""On each shard. Commands of more than 6 KiB are sent in parts, which Redis may read one by one."""


def reads(server: RedisServer) -> int:
    """How often Redis read from a connection; a pipeline is read at once."""
    with server.client() as client:
        before: dict[str, Any] = client.info("stats")
        after: dict[str, Any] = client.info("stats")
    own = after["total_reads_processed"] - before["total_reads_processed"]
    assert own == 1
    return int(before["total_reads_processed"])


def counted(servers: list[RedisServer], look: Callable[[], object]) -> list[int]:
    """How much more often each Redis read when `look` was called than without."""
    idle = [reads(server) for server in servers]
    idle = [reads(server) - before for server, before in zip(servers, idle, strict=True)]
    began = [reads(server) for server in servers]
    look()
    return [
        reads(server) - before - alone
        for server, before, alone in zip(servers, began, idle, strict=True)
    ]


def blocking(bench: RedisBench, channels: list[str]) -> list[StreamPosition]:
    """Ask as a thread without an event loop does."""
    store = RedisStore(RedisBlockingBus(bench.layer.bus), bench.prefix)
    asking = store.broker.positions(channels, int(time.time() * 1000))
    try:
        asking.send(None)
    except StopIteration as result:
        positions: list[StreamPosition] = result.value
        return positions
    raise AssertionError("it waits")


async def test_positions_of_many_channels_are_one_round_trip_for_each_shard(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    servers = [own_redis(), own_redis()]
    bench = await open_redis(SHARDS, servers=servers)
    by_shard: list[list[str]] = [[], []]
    for number in itertools.count():
        channel = f"{unique}-{number}"
        by_shard[bench.engine.shards.shard(channel)].append(channel)
        if min(map(len, by_shard)) >= CHANNELS:
            break
    channels = [channel for shard in by_shard for channel in shard[:CHANNELS]]
    for channel in channels:
        await bench.publish(channel, 1)
    blocking(bench, channels)  # opens the connections
    found: list[StreamPosition] = []

    trips = counted(servers, lambda: found.extend(blocking(bench, channels)))

    assert [position.offset for position in found] == [1] * 2 * CHANNELS
    assert trips == [1, 1]
