"""The faults of Redis that the documentation describes, each played against two servers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from realtime.engine.redis.keys import Keys
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.redis.slots import slot_of
from tests.chaos.harness import OPTIONS, Chaos, chaos
from tests.chaos.verdict import Verdict, judge
from tests.conftest import new_word, start_cluster
from tests.redis_cluster import RedisCluster
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer
from tests.tcp_proxy import TcpProxy

AWAY = 3.0
"""Seconds that Redis is away, where the fault does not say how long."""
RECOVERY_TIMEOUT = 60.0
"""Seconds in which everything must work again."""
CHANNELS = 4


@dataclass
class Stage:
    """The Redis of a fault, and how servers reach it."""

    redis: list[RedisServer] = field(default_factory=list)
    sentinel: Sentinel | None = None
    cluster: RedisCluster | None = None
    keys: list[str] = field(default_factory=list)
    """Of a cluster: one key of each channel at work."""
    proxy: TcpProxy | None = None
    options: dict[str, Any] = field(default_factory=dict)


Play = Callable[[Stage], Awaitable[None]]
"""Begins and ends a fault."""


class Fault(NamedTuple):
    """A row of the table."""

    name: str
    play: Play
    options: dict[str, Any] = {}  # noqa: RUF012 - a tuple
    """Of the service."""
    persistent: bool = False
    """Whether Redis has every write on disk."""
    shards: int = 1
    proxied: bool = False
    sentinel: bool = False
    cluster: bool = False
    """Whether Redis is a cluster of three primaries."""
    replicas: int = 1
    """Of each primary of a cluster."""
    ends: bool = True
    """False: nobody ends it, the service gets along by itself."""


class Outcome(NamedTuple):
    """What came of a fault."""

    seconds: float
    """From its end, or from its beginning if it has none, until publications reach everybody."""
    verdict: Verdict


# what happens


async def restarted(stage: Stage) -> None:
    redis = stage.redis[0]
    await asyncio.to_thread(redis.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(redis.start)


async def frozen(seconds: float, stage: Stage) -> None:
    stage.redis[0].freeze()
    try:
        await asyncio.sleep(seconds)
    finally:
        stage.redis[0].resume()


async def cut(stage: Stage) -> None:
    assert stage.proxy is not None
    stage.proxy.refuse()
    await asyncio.sleep(AWAY)
    stage.proxy.allow()


async def slow(stage: Stage) -> None:
    assert stage.proxy is not None
    stage.proxy.delay = 0.3
    await asyncio.sleep(AWAY)
    stage.proxy.delay = 0.0


async def full(stage: Stage) -> None:
    with stage.redis[0].client() as client:
        client.config_set("maxmemory", "1")
        await asyncio.sleep(AWAY)
        client.config_set("maxmemory", "0")


async def read_only(stage: Stage) -> None:
    with stage.redis[0].client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        await asyncio.sleep(AWAY)
        client.execute_command("REPLICAOF", "NO", "ONE")


async def another_password(stage: Stage) -> None:
    with stage.redis[0].client() as client:
        client.config_set("requirepass", "another")
        for kind in ("normal", "pubsub"):
            client.execute_command("CLIENT", "KILL", "TYPE", kind)  # but this one
        await asyncio.sleep(AWAY)
        client.config_set("requirepass", "")


async def master_lost(stage: Stage) -> None:
    assert stage.sentinel is not None
    await asyncio.to_thread(stage.sentinel.failover)
    await asyncio.to_thread(stage.sentinel.replica.start)  # the old master, as a replica


async def planned(stage: Stage) -> None:
    assert stage.sentinel is not None
    await asyncio.to_thread(stage.sentinel.planned_failover)


async def slots_moved(stage: Stage) -> None:
    """Move the slot of each channel to another primary."""
    assert stage.cluster is not None
    for slot in map(slot_of, stage.keys):
        source = stage.cluster.owner(slot)
        [target, *_] = [each for each in stage.cluster.primaries() if each is not source]
        await asyncio.to_thread(stage.cluster.move, slot, target)


async def primary_lost(stage: Stage) -> None:
    assert stage.cluster is not None
    victim = stage.cluster.owner(slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.kill)
    await asyncio.to_thread(stage.cluster.until_owned, slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.start)  # as a replica


async def server_emptied(stage: Stage) -> None:
    assert stage.cluster is not None
    victim = stage.cluster.owner(slot_of(stage.keys[0]))
    await asyncio.to_thread(victim.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(victim.start)


async def cluster_emptied(stage: Stage) -> None:
    assert stage.cluster is not None
    await asyncio.to_thread(stage.cluster.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(stage.cluster.restart_empty)


async def replica_promoted(stage: Stage) -> None:
    assert stage.cluster is not None
    await asyncio.to_thread(stage.cluster.planned_failover, slot_of(stage.keys[0]))


WAITING = {"redis_wait_replicas": 1}
TOLD = {"redis_epoch_per_run": True}

FAULTS = (
    Fault("Redis killed, 3 s away, every write on disk", restarted, persistent=True),
    Fault("Redis killed, 3 s away, empty afterwards", restarted),
    Fault("Redis frozen for 1 s", functools.partial(frozen, 1.0)),
    Fault("Redis frozen for 10 s", functools.partial(frozen, 10.0)),
    Fault("connections cut and refused for 3 s", cut, proxied=True),
    Fault("0.3 s of delay each way for 3 s", slow, proxied=True),
    Fault("memory full for 3 s (`noeviction`)", full),
    Fault("read-only for 3 s (`READONLY`)", read_only),
    Fault("another password for 3 s (`NOAUTH`), connections cut", another_password),
    Fault("one shard of two killed, 3 s away, empty afterwards", restarted, shards=2),
    Fault("master killed, Sentinel promotes the replica", master_lost, sentinel=True, ends=False),
    Fault("the same with `redis_wait_replicas`", master_lost, WAITING, sentinel=True, ends=False),
    Fault("planned failover (`SENTINEL FAILOVER`)", planned, sentinel=True, ends=False),
    Fault(
        "planned failover with `redis_wait_replicas`", planned, WAITING, sentinel=True, ends=False
    ),
    Fault("Cluster: four slots move to other servers", slots_moved, cluster=True),
    Fault("Cluster: planned failover (`CLUSTER FAILOVER`)", replica_promoted, cluster=True),
    Fault("Cluster: primary killed, its replica promoted", primary_lost, TOLD, cluster=True),
    Fault(
        "Cluster: the same with `redis_wait_replicas`", primary_lost, TOLD | WAITING, cluster=True
    ),
    Fault(
        "Cluster: primary without replica killed, 3 s away, empty afterwards",
        server_emptied,
        cluster=True,
        replicas=0,
    ),
    Fault("Cluster: all servers killed, 3 s away, empty afterwards", cluster_emptied, cluster=True),
)


# playing it


@asynccontextmanager
async def _stage(fault: Fault, factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    stage = Stage()
    async with AsyncExitStack() as undo:
        if fault.sentinel:
            stage.sentinel = Sentinel(factory.mktemp("sentinel"))
            undo.callback(stage.sentinel.kill)
            await asyncio.to_thread(stage.sentinel.start)
            stage.redis = [stage.sentinel.master]
            stage.options = {
                "redis_url": "",
                "redis_sentinels": stage.sentinel.address,
                "redis_master_name": stage.sentinel.master_name,
                "redis_epoch_per_run": True,
            }
        if fault.cluster:
            stage.cluster = RedisCluster(factory.mktemp("cluster"), 3, fault.replicas)
            undo.callback(stage.cluster.kill)
            await asyncio.to_thread(stage.cluster.start)
            stage.redis = stage.cluster.servers
            stage.options = {"redis_url": "", "redis_cluster_addrs": stage.cluster.addresses}
        for _ in range(0 if fault.sentinel or fault.cluster else fault.shards):
            redis = RedisServer(factory.mktemp("redis"), persistent=fault.persistent)
            undo.callback(redis.kill)
            stage.redis.append(await asyncio.to_thread(redis.start))
        if not fault.sentinel and not fault.cluster:
            stage.options = {"redis_url": ",".join(redis.url for redis in stage.redis)}
        if fault.proxied:
            stage.proxy = await undo.enter_async_context(TcpProxy(stage.redis[0].url))
            stage.options = {"redis_url": stage.proxy.url}
        yield stage


def _channels(stage: Stage, prefix: str) -> list[str]:
    """Return channels that belong to all shards in turn, or to several servers of a cluster."""
    if stage.cluster is not None:
        keys = Keys(prefix, Partitions(DEFAULT_PARTITIONS))
        names = [f"rec:{number}" for number in range(CHANNELS)]
        stage.keys = [keys.stream(name)[0] for name in names]
        return names
    layer = RedisChannelLayer(hosts=[redis.url for redis in stage.redis], prefix=prefix)
    keys = Keys(prefix)
    found: list[str] = []
    number = 0
    while len(found) < CHANNELS:
        name = f"rec:{number}"
        if layer.bus.shard(keys.group(name)) == len(found) % len(stage.redis):
            found.append(name)
        number += 1
    return found


async def play(fault: Fault, factory: pytest.TempPathFactory) -> Outcome:
    """Play a fault while publishers and clients are at work, and judge.

    Returns:
        What came of it. Complaints are in the verdict, and nothing is raised for them.
    """
    prefix = new_word()
    async with _stage(fault, factory) as stage:
        options = {**OPTIONS, **stage.options, **fault.options, "redis_prefix": prefix}
        servers = await asyncio.to_thread(start_cluster, factory, 2, stage.redis[0], **options)
        try:
            channels = _channels(stage, prefix)
            async with chaos(servers, channels, publishers=8, subscribers=24) as everybody:
                seconds = await _play_before(everybody, fault, stage)
                return Outcome(seconds, await judge(everybody, servers[0]))
        finally:
            for server in servers:
                await asyncio.to_thread(server.discard)


async def _play_before(everybody: Chaos, fault: Fault, stage: Stage) -> float:
    loop = asyncio.get_running_loop()
    everybody.publishers.start()
    await everybody.publishers.progress(50)
    began = loop.time()
    await fault.play(stage)
    if fault.ends:
        began = loop.time()
    await everybody.publishers.progress(1, RECOVERY_TIMEOUT)
    async with asyncio.timeout(RECOVERY_TIMEOUT):
        while not await _reaches_everybody(everybody):
            pass
    seconds = loop.time() - began
    await everybody.publishers.progress(50)
    return seconds


async def _reaches_everybody(everybody: Chaos) -> bool:
    """Whether clients get what is published now. Those that are being told may miss it."""
    await everybody.subscribers.live()
    for channel in everybody.channels:
        mark = await everybody.publishers.mark(channel)
        try:
            await everybody.arrived(channel, mark, 1.0)
        except AssertionError:
            return False
    return True
