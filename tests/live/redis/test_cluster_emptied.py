"""A Redis Cluster whose servers come back without their data: the clients of two nodes learn it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from realtime.engine.redis.keys import Keys
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.redis.slots import slot_of
from tests.live.clusters import SERVICE, Cluster
from tests.live.configurations import Connect
from tests.protocol_client import ProtocolClient
from tests.redis_cluster import RedisCluster
from tests.redis_server import has_sharded_pubsub
from tests.server import Server, wait_until

pytestmark = pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")

INSUFFICIENT = (3010, '{"reason":"insufficient state","reconnect":true}')


@pytest.fixture
def emptied(tmp_path: Path) -> Iterator[RedisCluster]:
    """A cluster that a test empties."""
    cluster = RedisCluster(tmp_path).start()
    yield cluster
    cluster.kill()


def channels_of_each(cluster: RedisCluster, unique: str) -> list[str]:
    """Return one channel for each server, in their order."""
    keys = Keys(SERVICE["redis_prefix"], Partitions(DEFAULT_PARTITIONS))
    found: dict[int, str] = {}
    number = 0
    while len(found) < len(cluster.servers):
        name = f"recover:{unique}-{number}"
        owner = cluster.owner(slot_of(keys.stream(name)[0]))
        found.setdefault(cluster.servers.index(owner), name)
        number += 1
    return [name for _, name in sorted(found.items())]


class Subscriber:
    """A client of one channel, which comes back where it was."""

    def __init__(self, connect: Connect, server: Server, channel: str) -> None:
        self._connect = connect
        self._server = server
        self.channel = channel
        self._client: ProtocolClient | None = None
        self._since: dict[str, Any] = {}
        self.epoch = ""

    async def subscribe(self) -> bool | None:
        """Connect and subscribe; return whether everything was recovered, None the first time."""
        self._client = await self._connect(self._server)
        since = {"recover": True, **self._since} if self._since else {}
        result = await self._client.result("subscribe", {"channel": self.channel, **since})
        self.epoch = result["epoch"]
        self._since = {"epoch": self.epoch, "offset": result.get("offset", 0)}
        return result.get("recovered", False) if since else None

    async def gets(self, value: int, offset: int) -> None:
        """Wait for a publication, and remember its position."""
        assert self._client is not None
        while (push := await self._client.push()).get("type"):
            pass  # a join or leave
        assert push["data"] == {"data": value, "offset": offset}
        self._since = {"epoch": self.epoch, "offset": offset}

    async def closed(self) -> tuple[int, str]:
        """Return how the connection was closed."""
        assert self._client is not None
        return await self._client.closed()


def publish(server: Server, channel: str, value: int) -> None:
    """Publish as soon as the cluster accepts it."""
    wait_until(lambda: server.api("publish", channel=channel, data=value) == {"result": {}})


async def get(subscribers: Sequence[Subscriber], value: int, offset: int) -> None:
    for subscriber in subscribers:
        await subscriber.gets(value, offset)


async def come_back(subscribers: Sequence[Subscriber]) -> None:
    """Expect that they are closed, recover nothing, and know another epoch."""
    for subscriber in subscribers:
        epoch = subscriber.epoch
        assert await subscriber.closed() == INSUFFICIENT
        assert await subscriber.subscribe() is False
        assert subscriber.epoch != epoch


async def test_clients_learn_what_an_emptied_cluster_lost_and_go_on(
    cluster: Cluster, emptied: RedisCluster, connect: Connect, unique: str
) -> None:
    addresses = {"redis_url": "", "redis_cluster_addrs": emptied.addresses}
    servers = cluster(2, emptied.servers[0], **SERVICE | addresses)
    lost, *kept = channels = channels_of_each(emptied, unique)
    subscribers = [
        Subscriber(connect, server, channel) for channel in channels for server in servers
    ]
    for subscriber in subscribers:
        await subscriber.subscribe()
    for channel in channels:
        publish(servers[0], channel, 1)
    await get(subscribers, 1, 1)
    of_lost = [each for each in subscribers if each.channel == lost]
    of_kept = [each for each in subscribers if each.channel in kept]

    await asyncio.to_thread(emptied.servers[0].restart, empty=True)

    await come_back(of_lost)
    for channel in channels:
        await asyncio.to_thread(publish, servers[1], channel, 2)
    await get(of_lost, 2, 1)
    await get(of_kept, 2, 2)

    await asyncio.to_thread(emptied.restart_empty)

    await come_back(subscribers)
    for channel in channels:
        await asyncio.to_thread(publish, servers[0], channel, 3)
    await get(subscribers, 3, 1)
    assert len({subscriber.epoch for subscriber in subscribers}) == len(channels)
