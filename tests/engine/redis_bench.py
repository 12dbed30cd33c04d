"""Engines over Redis on a bench: each kind of bus, and time that passes inside Redis."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis
from channels_redis.pubsub import RedisPubSubChannelLayer

from realtime.engine.lists import Kind
from realtime.engine.nodes import NodeInfo
from realtime.engine.redis.broker import DEFAULT_META, MetaSettings
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.foreign import ForeignGroups
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import RedisChannelLayer, new_serializer
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import ClusterServers
from realtime.redis.hosts import Host
from tests.conftest import new_word
from tests.engine.bench import NODE, NODE_LIFETIME, Bench, PairOf
from tests.redis_server import RedisServer, has_sharded_pubsub

LAYER_WITHOUT_REDIS = pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning")
"""For tests in which Redis is away: redis-py, below a third-party layer, leaves what it opened then
to the garbage collector. Our own connections are no such streams."""

ONE_REDIS, TWO_STEPS, SHARDS = "redis", "redis-two-steps", "redis-shards"
MODEL = "redis-model"
"""The model of Redis that the simulation runs on."""
PARTITIONS = "redis-partitions"
"""A cluster behind one address."""
CLUSTER = "redis-cluster"
"""Three servers that share the slots."""
ORDINARY = (ONE_REDIS, TWO_STEPS, SHARDS)
KINDS = (*ORDINARY, CLUSTER if has_sharded_pubsub() else PARTITIONS)


class RedisBench(Bench):
    """An engine over Redis, and what it keeps there."""

    engine: RedisEngine

    def __init__(
        self,
        servers: Sequence[RedisServer],
        prefix: str,
        foreign: Any,
        meta: MetaSettings,
        partitions: int = 0,
        *,
        cluster: str = "",
    ) -> None:
        """
        Args:
            foreign: a third-party layer that sends, or None.
            partitions: number of partitions; 0: none.
            cluster: URL of one of the servers, if they are a Redis Cluster.
        """
        self.servers = servers
        self.prefix = prefix
        self.foreign = foreign
        self.layer = RedisChannelLayer(
            hosts=[server.url for server in servers],
            prefix=prefix,
            partitions=partitions,
            connect_timeout=5,  # a busy host is no fault
        )
        if cluster:
            self.layer.bus = cluster_bus(cluster, prefix, partitions)
        groups = None if foreign is None else ForeignGroups(self.layer.bus, foreign)
        super().__init__(RedisEngine(self.layer.bus, prefix, meta, groups), self._elapse)

    async def _elapse(self, seconds: float) -> None:
        for server in self.servers:
            with server.client() as client:
                age(client, self.prefix, int(seconds * 1000))

    def client(self) -> redis.Redis:
        """A blocking client of the first Redis, to be closed."""
        return self.servers[0].client()

    @property
    def keys(self) -> Keys:
        """The names of keys."""
        return self.engine.shards.keys

    async def idle(self) -> None:
        await self.engine.lists.idle()

    def overdue_at(self, node: str) -> int:
        (key,) = (key for key in self.stored_keys() if key.endswith(":lists.expiry"))
        with self._client_of(key) as client:
            return int(client.zscore(key, node) or 0)

    def write_name(self, kind: Kind, node: str, name: bytes) -> None:
        key = self.keys.list_of(kind, node)
        with self._client_of(key) as client:
            client.sadd(key, name)

    def lose_list(self, kind: Kind, node: str) -> None:
        key = self.keys.list_of(kind, node)
        with self._client_of(key) as client:
            client.delete(key)

    def _client_of(self, key: str) -> redis.Redis:
        """A client, to be closed, of the server that has a key."""
        server = self.server_of(key)
        assert server is not None
        return server.client()

    def stored_keys(self) -> set[str]:
        """The keys below the prefix, on all servers."""
        stored = set[str]().union(*(server.keys() for server in self.servers))
        return {key for key in stored if self.prefix in key}

    def server_of(self, key: str) -> RedisServer | None:
        """The server that has a key; None if none has it."""
        for server in self.servers:
            with server.client() as client, contextlib.suppress(redis.exceptions.MovedError):
                if client.exists(key):
                    return server
        return None

    def root(self, name: str) -> str:
        """What the names of the keys of a channel, or of a claim, begin with."""
        return self.layer.bus.partitions.root(self.prefix, self.keys.group(name))

    def group_channel(self, channel: str) -> str:
        """The Redis channel of a channel's group."""
        return self.layer.bus.group_channel(self.keys.group(channel))


RedisPair = PairOf[RedisBench]


def cluster_bus(url: str, prefix: str, partitions: int) -> RedisBus:
    """Return a bus to the cluster of a server."""
    parts = Partitions(partitions)
    hosts = ClusterServers([Host({"address": url})], parts)
    return RedisBus(hosts, prefix, new_serializer(), partitions=parts)


def age(client: redis.Redis, prefix: str, milliseconds: int) -> None:
    """Make everything below a prefix older; what would have expired is gone."""
    for key in client.scan_iter(f"{prefix}:*"):
        if b"expiry" in key:
            members: list[Any] = client.zrange(key, 0, -1)
            for name in members:
                client.zincrby(key, -milliseconds, name)
        if b":map:" in key:
            found: Any = client.hgetall(key)
            for name, entry in found.items():
                if name and entry.count(b":") > 5:
                    offset, put_at, ends, rest = entry.split(b":", 3)
                    left = max(int(ends) - milliseconds, min(int(ends), 1))
                    client.hset(key, name, b"%b:%b:%d:%b" % (offset, put_at, left, rest))
        left = client.pttl(key)
        if left >= 0:
            client.pexpire(key, left - milliseconds)
        if b":meta:" in key and int(client.hget(key, "r") or 0):
            client.hincrby(key, "r", -(milliseconds // 1000))


@asynccontextmanager
async def redis_bench(
    kind: str,
    servers: Sequence[RedisServer],
    prefix: str = "",
    node: NodeInfo = NODE,
    meta: MetaSettings = DEFAULT_META,
    cluster: str = "",
) -> AsyncIterator[RedisBench]:
    """Start an engine of this kind, and announce its node.

    `cluster`: of a Redis Cluster, the URL that names it; of its last server by default.
    """
    prefix = prefix or new_word()
    used = servers if kind in (SHARDS, CLUSTER) else servers[:1]
    foreign = None
    if kind == TWO_STEPS:
        foreign = RedisPubSubChannelLayer(hosts=[servers[0].url], prefix=f"{prefix}-foreign")
    partitions = DEFAULT_PARTITIONS if kind in (PARTITIONS, CLUSTER) else 0
    if kind == CLUSTER:
        cluster = cluster or servers[-1].url
    bench = RedisBench(used, prefix, foreign, meta, partitions, cluster=cluster)
    bench.receiver.uid = node.uid
    try:
        await bench.engine.start(bench.receiver, bench.receiver.uid)
        await bench.cluster.announce(node, NODE_LIFETIME)
        yield bench
    finally:
        await bench.engine.stop()
        if foreign is not None:
            await close_layer(foreign)


async def close_layer(layer: RedisPubSubChannelLayer) -> None:
    """Close a third-party layer on this loop.

    It cancels its receiver and waits for it, for ever if redis-py connects again at that moment: in
    Python 3.11 `asyncio.wait_for` loses a cancellation. So the receiver is cancelled once more, by
    a cancellation of `flush`.
    """
    closed = False
    while not closed:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await layer.flush()
                closed = True
