"""The faults of Redis that the documentation describes, each played against two servers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.redis.slots import slot_of
from tests.chaos.faults import AWAY, CHANNELS, Fault, MakeStage, Stage
from tests.redis_cluster import RedisCluster
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer
from tests.tcp_proxy import TcpProxy


@dataclass
class RedisStage(Stage):
    """The Redis of a fault, and how servers reach it."""

    redis: list[RedisServer] = field(default_factory=list)
    sentinel: Sentinel | None = None
    cluster: RedisCluster | None = None
    keys: list[str] = field(default_factory=list)
    """Of a cluster: one key of each channel at work."""
    proxy: TcpProxy | None = None

    def channels(self, prefix: str) -> list[str]:
        """Return channels that belong to all shards in turn, or to several servers of a cluster."""
        if self.cluster is not None:
            keys = Keys(prefix, Partitions(DEFAULT_PARTITIONS))
            names = super().channels(prefix)
            self.keys = [keys.stream(name)[0] for name in names]
            return names
        layer = RedisChannelLayer(hosts=[redis.url for redis in self.redis], prefix=prefix)
        keys = Keys(prefix)
        found: list[str] = []
        number = 0
        while len(found) < CHANNELS:
            name = f"rec:{number}"
            if layer.bus.shard(keys.group(name)) == len(found) % len(self.redis):
                found.append(name)
            number += 1
        return found


# where it happens


def on_redis(
    shards: int = 1, *, persistent: bool = False, proxied: bool = False
) -> MakeStage[RedisStage]:
    """Return the stage with Redis. `persistent`: whether it has every write on disk."""

    @asynccontextmanager
    async def stage(factory: pytest.TempPathFactory) -> AsyncIterator[RedisStage]:
        stage = RedisStage()
        try:
            for _ in range(shards):
                stage.redis.append(RedisServer(factory.mktemp("redis"), persistent=persistent))
                await asyncio.to_thread(stage.redis[-1].start)
            stage.options = {"redis_url": ",".join(redis.url for redis in stage.redis)}
            if not proxied:
                yield stage
                return
            async with TcpProxy(stage.redis[0].url) as stage.proxy:
                stage.options = {"redis_url": stage.proxy.url}
                yield stage
        finally:
            for redis in stage.redis:
                redis.kill()

    return stage


@asynccontextmanager
async def on_sentinel(factory: pytest.TempPathFactory) -> AsyncIterator[RedisStage]:
    sentinel = Sentinel(factory.mktemp("sentinel"))
    try:
        await asyncio.to_thread(sentinel.start)
        options = {
            "redis_url": "",
            "redis_sentinels": sentinel.address,
            "redis_master_name": sentinel.master_name,
            "redis_epoch_per_run": True,
        }
        yield RedisStage(options, redis=[sentinel.master], sentinel=sentinel)
    finally:
        sentinel.kill()


def on_cluster(replicas: int = 1) -> MakeStage[RedisStage]:
    """Return the stage with a cluster of three primaries. `replicas`: of each primary."""

    @asynccontextmanager
    async def stage(factory: pytest.TempPathFactory) -> AsyncIterator[RedisStage]:
        cluster = RedisCluster(factory.mktemp("cluster"), 3, replicas)
        try:
            await asyncio.to_thread(cluster.start)
            options = {"redis_url": "", "redis_cluster_addrs": cluster.addresses}
            yield RedisStage(options, redis=cluster.servers, cluster=cluster)
        finally:
            cluster.kill()

    return stage


# what happens


async def restarted(stage: RedisStage) -> None:
    redis = stage.redis[0]
    await asyncio.to_thread(redis.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(redis.start)


async def frozen(seconds: float, stage: RedisStage) -> None:
    stage.redis[0].freeze()
    try:
        await asyncio.sleep(seconds)
    finally:
        stage.redis[0].resume()


async def cut(stage: RedisStage) -> None:
    assert stage.proxy is not None
    stage.proxy.refuse()
    await asyncio.sleep(AWAY)
    stage.proxy.allow()


async def slow(stage: RedisStage) -> None:
    assert stage.proxy is not None
    stage.proxy.delay = 0.3
    await asyncio.sleep(AWAY)
    stage.proxy.delay = 0.0


async def full(stage: RedisStage) -> None:
    with stage.redis[0].client() as client:
        client.config_set("maxmemory", "1")
        await asyncio.sleep(AWAY)
        client.config_set("maxmemory", "0")


async def read_only(stage: RedisStage) -> None:
    with stage.redis[0].client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        await asyncio.sleep(AWAY)
        client.execute_command("REPLICAOF", "NO", "ONE")


async def another_password(stage: RedisStage) -> None:
    with stage.redis[0].client() as client:
        client.config_set("requirepass", "another")
        for kind in ("normal", "pubsub"):
            client.execute_command("CLIENT", "KILL", "TYPE", kind)  # but this one
        await asyncio.sleep(AWAY)
        client.config_set("requirepass", "")


async def master_lost(stage: RedisStage) -> None:
    assert stage.sentinel is not None
    await asyncio.to_thread(stage.sentinel.failover)
    await asyncio.to_thread(stage.sentinel.replica.start)  # the old master, as a replica


async def planned(stage: RedisStage) -> None:
    assert stage.sentinel is not None
    await asyncio.to_thread(stage.sentinel.planned_failover)


async def slots_moved(stage: RedisStage) -> None:
    """Move the slot of each channel to another primary."""
    assert stage.cluster is not None
    for slot in map(slot_of, stage.keys):
        source = stage.cluster.owner(slot)
        [target, *_] = [each for each in stage.cluster.primaries() if each is not source]
        await asyncio.to_thread(stage.cluster.move, slot, target)


async def primary_lost(stage: RedisStage) -> None:
    assert stage.cluster is not None
    victim = stage.cluster.owner(slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.kill)
    await asyncio.to_thread(stage.cluster.until_owned, slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.start)  # as a replica


async def server_emptied(stage: RedisStage) -> None:
    assert stage.cluster is not None
    victim = stage.cluster.owner(slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(victim.start)


async def cluster_emptied(stage: RedisStage) -> None:
    assert stage.cluster is not None
    await asyncio.to_thread(stage.cluster.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(stage.cluster.restart_empty)


async def replica_promoted(stage: RedisStage) -> None:
    assert stage.cluster is not None
    await asyncio.to_thread(stage.cluster.planned_failover, slot_of(stage.keys[0]))


WAITING = {"redis_wait_replicas": 1}
TOLD = {"redis_epoch_per_run": True}

FAULTS = (
    Fault("Redis killed, 3 s away, every write on disk", restarted, on_redis(persistent=True)),
    Fault("Redis killed, 3 s away, empty afterwards", restarted, on_redis()),
    Fault("Redis frozen for 1 s", functools.partial(frozen, 1.0), on_redis()),
    Fault("Redis frozen for 10 s", functools.partial(frozen, 10.0), on_redis()),
    Fault("connections cut and refused for 3 s", cut, on_redis(proxied=True)),
    Fault("0.3 s of delay each way for 3 s", slow, on_redis(proxied=True)),
    Fault("memory full for 3 s (`noeviction`)", full, on_redis()),
    Fault("read-only for 3 s (`READONLY`)", read_only, on_redis()),
    Fault("another password for 3 s (`NOAUTH`), connections cut", another_password, on_redis()),
    Fault("one shard of two killed, 3 s away, empty afterwards", restarted, on_redis(2)),
    Fault("master killed, Sentinel promotes the replica", master_lost, on_sentinel, ends=False),
    Fault("the same with `redis_wait_replicas`", master_lost, on_sentinel, WAITING, ends=False),
    Fault("planned failover (`SENTINEL FAILOVER`)", planned, on_sentinel, ends=False),
    Fault("planned failover with `redis_wait_replicas`", planned, on_sentinel, WAITING, ends=False),
    Fault("Cluster: four slots move to other servers", slots_moved, on_cluster()),
    Fault("Cluster: planned failover (`CLUSTER FAILOVER`)", replica_promoted, on_cluster()),
    Fault("Cluster: primary killed, its replica promoted", primary_lost, on_cluster(), TOLD),
    Fault(
        "Cluster: the same with `redis_wait_replicas`", primary_lost, on_cluster(), TOLD | WAITING
    ),
    Fault(
        "Cluster: primary without replica killed, 3 s away, empty afterwards",
        server_emptied,
        on_cluster(replicas=0),
    ),
    Fault("Cluster: all servers killed, 3 s away, empty afterwards", cluster_emptied, on_cluster()),
)
