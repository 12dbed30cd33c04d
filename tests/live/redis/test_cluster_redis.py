"""One service on every arrangement of Redis: password, TLS, Sentinel, shards, a cluster.

Design, section 4.5; the options `redis_*`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.live.clusters import SERVICE, Cluster, OwnRedis, channels, groups, nodes, presence
from tests.live.configurations import FORCED, Connect
from tests.protocol_client import ProtocolClient
from tests.redis.conftest import TlsProxy
from tests.redis_cluster import RedisCluster
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.server import Server, wait_until

OwnSentinel = Callable[..., Sentinel]

OK: Mapping[str, Any] = {"result": {}}


async def check_everything(
    connect: Connect, servers: Sequence[Server], names: Sequence[str], user: str
) -> None:
    """Publish, history, presence, channels and control work between two nodes, in small.

    `names`: channels of the namespace `recover` that nobody was ever in. `user` is part of each,
    and of no other channel.
    """
    one, other = servers
    clients = [await connect(server, user=user) for server in servers]
    stayer = await connect(other, user=user + "not")
    for client in (*clients, stayer):
        for name in names:
            await client.result("subscribe", {"channel": name})
    for name in names:
        await asyncio.to_thread(one.publish, name, "from one")
        await asyncio.to_thread(other.publish, name, "from other")
    for client in (*clients, stayer):
        pushes = [await client.push() for _ in range(2 * len(names))]
        for name in names:
            mine = [push["data"] for push in pushes if push["channel"] == name]
            assert [p["data"] for p in mine] == ["from one", "from other"]
            assert [p["offset"] for p in mine] == [1, 2]
    everybody = {client.client for client in (*clients, stayer)}
    for server in servers:
        for name in names:
            reply = await asyncio.to_thread(server.api, "history", channel=name)
            kept = [entry["data"] for entry in reply["result"]["publications"]]
            assert kept == ["from one", "from other"]
            assert set(await asyncio.to_thread(presence, server, name)) == everybody
        assert await asyncio.to_thread(channels, server, user) == sorted(names)
    await asyncio.to_thread(one.api, "unsubscribe", user=user, channel=names[0])
    for client in clients:
        assert await client.push() == {"type": 3, "channel": names[0], "data": {}}
    await asyncio.to_thread(other.api, "disconnect", user=user)
    for client in clients:
        assert await client.closed() == FORCED

    def is_alone(server: Server) -> bool:
        return all(list(presence(server, name)) == [stayer.client] for name in names)

    for server in servers:
        await asyncio.to_thread(wait_until, lambda s=server: is_alone(s), what="the end of others")
    await stayer.quiet()
    await stayer.socket.close()


@pytest.mark.parametrize("where", ["options", "URL"])
async def test_password_works_and_is_in_no_log_though_redis_goes_away(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str, where: str
) -> None:
    redis = own_redis(password="it's-a-secret!with$signs" if where == "options" else "secret-word")
    address = {"redis_url": "", "redis_host": "127.0.0.1", "redis_port": str(redis.port)}
    options = address | {"redis_password": redis.password} if where == "options" else {}
    servers = cluster(2, redis, **SERVICE | options)
    await check_everything(connect, servers, [f"recover:{unique}"], unique)

    redis.kill()
    reply = servers[0].api("publish", channel=unique, data=1)

    assert reply["error"]["code"] in (300, 301)
    for server in servers:
        wait_until(lambda s=server: "was lost" in s.log, what="a word about it")
        assert redis.password not in server.log


async def test_service_works_over_tls(
    cluster: Cluster, redis_server: RedisServer, connect: Connect, unique: str, tmp_path: Path
) -> None:
    options = SERVICE | {"redis_prefix": unique, "redis_tls_skip_verify": True}
    async with TlsProxy(redis_server.url, tmp_path) as proxy:
        # the proxy works on this loop, so nothing here may block it
        options["redis_url"] = proxy.url
        servers = await asyncio.to_thread(cluster, 2, redis_server, **options)
        await check_everything(connect, servers, [f"recover:{unique}"], unique)
        for server in servers:
            await asyncio.to_thread(server.kill)
    assert proxy.connections == 4, "each node has a connection for commands and one for pub/sub"


async def test_service_goes_on_after_a_failover_and_its_clients_stay(
    cluster: Cluster, own_sentinel: OwnSentinel, connect: Connect, unique: str
) -> None:
    sentinel = own_sentinel(password="word", sentinel_password="other")
    where = {
        "redis_url": "",
        "redis_sentinels": sentinel.address,
        "redis_master_name": sentinel.master_name,
        "redis_password": "word",
        "redis_sentinel_password": "other",
    }
    servers = one, other = cluster(2, sentinel.master, **SERVICE | where)
    await check_everything(connect, servers, [f"recover:{unique}"], unique)
    channel = f"joined:{unique}"
    clients = [await connect(server) for server in servers]
    for client in clients:
        await client.result("subscribe", {"channel": channel})

    await asyncio.to_thread(sentinel.failover)

    wait_until(
        lambda: all(s.api("publish", channel=unique, data=1) == OK for s in servers),
        what="a publication that succeeds",
    )
    wait_until(
        lambda: list(groups(sentinel.master).values()) == [2, 2, 2, 2],
        what="both nodes in the group of the channel, and in the three of their own",
    )
    wait_until(lambda: len(nodes(one)) == 2, what="both nodes")
    everybody = {client.client for client in clients}
    wait_until(lambda: set(presence(other, channel)) == everybody, what="presence of both")
    one.publish(channel, "after it")
    for client in clients:
        client.pushes.clear()  # the joins
        while (push := await client.push()).get("type"):
            pass
        assert push["data"] == {"data": "after it"}
    await check_everything(connect, servers, [f"recover:after{unique}"], f"after{unique}")


@pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")
async def test_channels_are_spread_over_a_redis_cluster_and_everything_works(
    cluster: Cluster, redis_cluster: RedisCluster, connect: Connect, unique: str
) -> None:
    options = {
        "redis_url": "",
        "redis_cluster_addrs": redis_cluster.addresses,
        "redis_password": redis_cluster.servers[0].password,
    }
    servers = cluster(2, redis_cluster.servers[0], **SERVICE | options)
    names = [f"recover:{unique}-{number}" for number in range(12)]

    await check_everything(connect, servers, names, unique)

    found = [holders(redis_cluster.servers, name) for name in names]
    assert all(len(each) == 1 for each in found), "what belongs together is on one server"
    assert len({number for [number] in found}) == len(redis_cluster.servers)


def holders(servers: Sequence[RedisServer], channel: str) -> list[int]:
    """The servers that have keys of a channel."""
    return [
        number
        for number, server in enumerate(servers)
        if any(key.endswith(f":{channel}") for key in server.keys())  # noqa: SIM118
    ]


@pytest.fixture
def shards(own_redis: OwnRedis) -> list[RedisServer]:
    """Two Redis servers, and channels that belong to each."""
    return [own_redis(), own_redis()]


def sharded(cluster: Cluster, shards: Sequence[RedisServer]) -> list[Server]:
    """Two nodes over them."""
    url = ",".join(server.url for server in shards)
    return cluster(2, shards[0], **SERVICE | {"redis_url": url})


SHARDED = sorted(f"recover:sharded{number}" for number in range(12))
"""Channels of which each shard has some: which one a channel belongs to never changes."""
NAMES_FOR_LATER = [f"recover:late{number}" for number in range(12)]
"""The same."""


async def test_channels_are_spread_over_shards_and_everything_works(
    cluster: Cluster, shards: list[RedisServer], connect: Connect
) -> None:
    servers = sharded(cluster, shards)
    await check_everything(connect, servers, SHARDED, "sharded")
    found = [holders(shards, name) for name in SHARDED]
    assert all(len(each) == 1 for each in found), "what belongs together is on one shard"
    assert {number for [number] in found} == {0, 1}


@pytest.mark.parametrize("dead", ["with control", "without control"])
async def test_channels_and_new_clients_of_the_other_shard_are_served_while_one_shard_is_dead(
    cluster: Cluster, shards: list[RedisServer], connect: Connect, unique: str, dead: str
) -> None:
    servers = one, other = sharded(cluster, shards)
    clients: list[ProtocolClient] = [await connect(server, user=unique) for server in servers]
    for client in clients:
        for name in SHARDED:
            await client.result("subscribe", {"channel": name})
    for name in SHARDED:
        one.publish(name, 1)
    for client in clients:
        for _ in SHARDED:
            await client.push()
    [control] = holders(shards, "nodes")  # which concerns the service as a whole
    victim = control if dead == "with control" else 1 - control
    living = [name for name in SHARDED if holders(shards, name) == [1 - victim]]
    lost = [name for name in SHARDED if holders(shards, name) == [victim]]

    shards[victim].kill()

    for number, name in enumerate(living):
        servers[number % 2].publish(name, 2)
    for client in clients:
        pushes = [await client.push() for _ in living]
        assert {push["channel"]: push["data"] for push in pushes} == {
            name: {"data": 2, "offset": 2} for name in living
        }
    for name in living:
        kept = other.api("history", channel=name)["result"]["publications"]
        assert [entry["data"] for entry in kept] == [1, 2]
        assert set(presence(one, name)) == {client.client for client in clients}
    for name in lost:
        reply = one.api("publish", channel=name, data=2)
        assert reply["error"]["code"] in (300, 301)
    for client in clients:
        await client.quiet()

    # a client that comes now, into a channel that nobody was in
    name = next(
        name for name in NAMES_FOR_LATER if "error" not in one.api("publish", channel=name, data=1)
    )
    late = await connect(other, user=f"{unique}late")
    assert (await late.result("subscribe", {"channel": name}))["offset"] == 1
    assert set(presence(one, name)) == {late.client}
    one.publish(name, 2)
    assert await late.publication() == {"data": 2, "offset": 2}
