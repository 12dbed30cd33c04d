"""Many channels from a thread: one round trip for each server, counted by Redis itself."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from redis import Redis

from realtime.engine.base import Outgoing, Published
from realtime.engine.redis.broker import RedisStreams
from realtime.engine.redis.engine import RedisStore
from realtime.protocol.messages import Publication, StreamPosition
from realtime.serving import run_by_hand
from tests.engine.bench import KEPT
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import CLUSTER, SHARDS, RedisBench
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.server import wait_until
from tests.unit.parts import data

CHANNELS = 3
"""On each shard. Commands of more than 6 KiB are sent in parts, which Redis may read one by one."""


def reads(client: Redis) -> int:
    """How often Redis has read from a connection; a pipeline is read at once."""
    stats: dict[str, Any] = client.info("stats")
    return int(stats["total_reads_processed"])


def is_quiet(client: Redis) -> bool:
    """Whether Redis reads nothing else, such as the ends of connections that were closed before."""
    return all(reads(client) + 1 == reads(client) for _ in range(3))


def counted(servers: list[RedisServer], look: Callable[[], object]) -> list[int]:
    """How often each Redis read when `look` was called, but for the questions of this function."""
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(server.client()) for server in servers]
        for client in clients:
            wait_until(partial(is_quiet, client))
        before = [reads(client) for client in clients]
        look()
        return [reads(client) - start - 1 for client, start in zip(clients, before, strict=True)]


def streams(bench: RedisBench) -> RedisStreams:
    """The streams as a thread without an event loop reaches them."""
    return RedisStore(bench.layer.bus, bench.prefix).broker


def blocking(bench: RedisBench, channels: list[str]) -> list[StreamPosition]:
    """Ask as a thread without an event loop does."""
    return run_by_hand(streams(bench).positions(channels, int(time.time() * 1000)))


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


@pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")
async def test_partitions_of_a_cluster_share_the_round_trips_to_their_servers(
    open_redis: OpenRedisBench, unique: str
) -> None:
    bench = await open_redis(CLUSTER)
    channels = [f"{unique}-{number}" for number in range(30)]
    shards = {bench.engine.shards.shard(channel) for channel in channels}
    assert len(shards) > 2 * len(bench.servers)
    sent = [Outgoing(channel, Publication(data("1")), KEPT) for channel in channels]
    for server in bench.servers:
        server.reset_command_calls()

    published = run_by_hand(streams(bench).publish_many(sent))

    positions = [each.position for each in published if isinstance(each, Published)]
    assert [position and position.offset for position in positions] == [1] * len(channels)
    # the first of a batch brings the text of the script along
    assert [server.command_calls()["eval"] for server in bench.servers] == [1, 1, 1]
    assert blocking(bench, channels) == positions
    found: list[StreamPosition] = []
    trips = counted(list(bench.servers), lambda: found.extend(blocking(bench, channels)))
    assert found == positions
    assert trips == [1, 1, 1]
