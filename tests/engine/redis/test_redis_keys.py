"""The names of keys in Redis: all begin with the prefix."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from realtime.channel_rules import CONTROL
from realtime.engine.base import Outgoing
from realtime.engine.once import Once
from realtime.protocol.messages import ClientInfo, Publication
from tests.engine.bench import KEPT, NODE, PLAIN
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import ONE_REDIS, PARTITIONS, SHARDS, RedisBench
from tests.redis_server import RedisServer
from tests.unit.parts import data

TAGGED = re.compile(r"[^:]+:\{[0-9]+\}:")


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


async def test_what_belongs_to_a_channel_is_in_one_slot_and_channels_are_spread(
    lone_cluster: RedisServer, open_redis: OpenRedisBench
) -> None:
    engine = await open_redis(PARTITIONS)
    names = [f"channel{number}" for number in range(20)]
    slots = {}
    for name in names:
        await engine.broker.subscribe(name)
        await engine.broker.publish(Outgoing(name, Publication(data("1")), KEPT, Once("key")))
        await engine.presence.add(name, [ClientInfo("17", "C")], 100)
        keys = {key for key in engine.stored_keys() if key.endswith(f":{name}")}
        assert len(keys) == 4  # stream, meta and presence
        with lone_cluster.client() as client:
            slots[name] = {
                client.execute_command("CLUSTER", "KEYSLOT", key)
                for key in [*keys, *engine.keys.stream(name), engine.group_channel(name)]
            }

    assert all(len(slot) == 1 for slot in slots.values())
    assert len(set[int]().union(*slots.values())) > 10
    assert not [key for key in engine.stored_keys() if not TAGGED.match(key)]


async def test_engines_whose_prefixes_begin_alike_share_nothing(
    open_redis: OpenRedisBench, unique: str
) -> None:
    one = await open_redis(prefix=f"{unique}:a")
    other = await open_redis(prefix=unique)
    await one.publish("b", 1)
    assert await other.kept("a:b") == []
    assert await other.kept("b") == []


async def test_node_that_withdrew_leaves_nothing_when_channels_change_afterwards(
    own: RedisBench, unique: str
) -> None:
    """Clients that are slow to close unsubscribe while the node withdraws."""
    server = own.servers[0]
    await own.broker.subscribe(f"{unique}-before")
    assert server.keys() != set()

    await own.cluster.withdraw(NODE)
    await own.broker.unsubscribe(f"{unique}-before")
    await own.broker.subscribe(f"{unique}-after")
    await own.engine.stop()

    assert server.keys() == set()
    assert server.pubsub_channels() == set()
