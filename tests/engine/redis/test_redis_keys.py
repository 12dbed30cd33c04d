"""The names of keys in Redis: all begin with the prefix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.channel_rules import CONTROL
from realtime.protocol.messages import ClientInfo
from tests.engine.bench import KEPT, NODE, PLAIN
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import ONE_REDIS, SHARDS
from tests.redis_server import RedisServer


@pytest.mark.parametrize("kind", [ONE_REDIS, SHARDS])
async def test_everything_in_redis_begins_with_the_prefix(
    own_redis: Callable[..., RedisServer],
    open_redis: OpenRedisBench,
    kind: str,
) -> None:
    servers = [own_redis(), own_redis()]
    engine = await open_redis(kind, servers=servers, prefix="mysite")
    await engine.broker.subscribe(CONTROL)
    for name in ["a", "$b#1", "ns:c"]:
        await engine.broker.subscribe(name)
        await engine.publish(name, 1, options=KEPT)
        await engine.publish(name, 2, options=PLAIN)
        await engine.presence.add(name, [ClientInfo("17", "C")], 100)
        await engine.broker.history(name)

    keys = set[str]().union(*(server.keys() for server in servers))
    channels = set[str]().union(*(server.pubsub_channels() for server in servers))

    assert len(keys) >= 4 * 3 + 4
    assert {key for key in keys if not key.startswith("mysite:")} == set()
    assert len(channels) == 5  # three, control, and the mailbox
    assert {channel for channel in channels if not channel.startswith("mysite")} == set()


async def test_engines_whose_prefixes_begin_alike_share_nothing(
    open_redis: OpenRedisBench, unique: str
) -> None:
    one = await open_redis(prefix=f"{unique}:a")
    other = await open_redis(prefix=unique)
    await one.publish("b", 1)

    assert await other.kept("a:b") == []
    assert await other.kept("b") == []


async def test_node_that_withdrew_and_stopped_leaves_nothing(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    server = own_redis()
    engine = await open_redis(servers=[server])
    await engine.broker.subscribe(unique)
    assert server.keys() != set()

    await engine.broker.unsubscribe(unique)
    await engine.cluster.withdraw(NODE)
    await engine.engine.stop()

    assert server.keys() == set()
    assert server.pubsub_channels() == set()


async def test_node_that_withdrew_leaves_nothing_when_channels_change_afterwards(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    """Clients that are slow to close unsubscribe while the node withdraws."""
    server = own_redis()
    engine = await open_redis(servers=[server])
    await engine.broker.subscribe(f"{unique}-before")

    await engine.cluster.withdraw(NODE)
    await engine.broker.unsubscribe(f"{unique}-before")
    await engine.broker.subscribe(f"{unique}-after")
    await engine.engine.stop()

    assert server.keys() == set()
