"""All engines, for the tests of their contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from realtime.engine.epochs import OwnLifetime, no_lifetime
from realtime.engine.nodes import NodeInfo
from realtime.engine.postgresql.streams import Keeping
from realtime.engine.redis.broker import MetaSettings
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from tests.database_server import DatabaseServer, PromotedPostgres
from tests.engine.bench import (
    CHECKED,
    META_LIFETIME,
    NODE,
    OWN_LIFETIMES,
    SECOND_NODE,
    Bench,
    Pair,
    memory_bench,
)
from tests.engine.postgresql_bench import POSTGRESQL, postgresql_bench
from tests.engine.postgresql_model_bench import POSTGRESQL_MODEL, model_bench
from tests.engine.redis.channel_list_bench import ChannelListBench, Wire
from tests.engine.redis_bench import (
    CLUSTER,
    KINDS,
    MODEL,
    ONE_REDIS,
    PARTITIONS,
    RedisBench,
    RedisPair,
    redis_bench,
)
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.simulation.served_redis import ServedRedis
from tests.unit.parts import Clock

MEMORY, MEMORY_CLUSTER = "memory", "memory-cluster"
"""The memory engine, and one with the cluster that tests of the node use."""

MAP_KINDS = [MEMORY, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL]
"""The engines that have maps."""


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    """The clock of the test's event loop, which the test moves."""
    loop = asyncio.get_running_loop()
    yield Clock(loop)
    del loop.time


@pytest.fixture(scope="session")
def redis_servers(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[RedisServer]]:
    """The shared Redis, and a second one."""
    other = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield [redis_server, other]
    other.kill()


@pytest.fixture(scope="session")
def redis_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The model of Redis, behind a socket."""
    model = ServedRedis(tmp_path_factory.mktemp("model")).start()
    yield model
    model.kill()


Servers = Sequence[RedisServer] | DatabaseServer
ServersOf = Callable[[str], Any]
"""Gives the servers for a kind of bench."""


@pytest.fixture(scope="session")
def postgresql_server(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    """A PostgreSQL for engines."""
    return start_database(PromotedPostgres)


@pytest.fixture
def servers_of(request: pytest.FixtureRequest) -> ServersOf:
    """The shared servers for a kind of bench, started when they are needed."""

    def find(kind: str) -> Servers:
        if kind == POSTGRESQL:
            server: DatabaseServer = request.getfixturevalue("postgresql_server")
            return server
        if kind == CLUSTER:
            cluster: RedisCluster = request.getfixturevalue("redis_cluster")
            return cluster.servers
        if kind == PARTITIONS:
            return [request.getfixturevalue("lone_cluster")]
        if kind == MODEL:
            return [request.getfixturevalue("redis_model")]
        servers: list[RedisServer] = request.getfixturevalue("redis_servers")
        return servers

    return find


def open_bench(
    kind: str,
    servers_of: ServersOf,
    meta_lifetime: int = 0,
    own_lifetime: OwnLifetime = no_lifetime,
    least_lifetime: int = 0,
) -> AbstractAsyncContextManager[Bench]:
    if kind in (MEMORY, MEMORY_CLUSTER):
        return memory_bench(meta_lifetime, own_lifetime, clustered=kind == MEMORY_CLUSTER)
    keeping = Keeping(meta_lifetime, own_lifetime=own_lifetime, least_lifetime=least_lifetime)
    if kind == POSTGRESQL:
        return postgresql_bench(servers_of(kind), keeping=keeping)
    if kind == POSTGRESQL_MODEL:
        return model_bench(keeping=keeping)
    meta = MetaSettings(meta_lifetime, own_lifetime=own_lifetime, least_lifetime=least_lifetime)
    return redis_bench(kind, servers_of(kind), meta=meta)


@pytest.fixture(params=[MEMORY, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def engine(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine, started and announced; the test moves the time."""
    async with open_bench(request.param, servers_of) as bench:
        yield bench


@pytest.fixture(params=[MEMORY_CLUSTER, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def clustered(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine with a cluster, started and announced; the test moves the time."""
    async with open_bench(request.param, servers_of) as bench:
        yield bench


@pytest.fixture(params=[MEMORY, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def forgetful(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine, with unused positions forgotten after META_LIFETIME."""
    async with open_bench(request.param, servers_of, META_LIFETIME) as bench:
        yield bench


@pytest.fixture(params=[MEMORY, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def choosy(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine, with unused positions of channels in OWN_LIFETIMES forgotten after that."""

    def own_lifetime(channel: str) -> int:
        return OWN_LIFETIMES.get(channel.partition(":")[0], 0)

    async with open_bench(request.param, servers_of, META_LIFETIME, own_lifetime) as bench:
        yield bench


@pytest.fixture(params=[MEMORY, *KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def slow(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine, whose nodes check positions less often than unused ones are forgotten."""
    async with open_bench(request.param, servers_of, 60, lambda _: 70, CHECKED) as bench:
        yield bench


@pytest.fixture(params=MAP_KINDS)
async def mapped(request: pytest.FixtureRequest, servers_of: ServersOf) -> AsyncIterator[Bench]:
    """Each engine with maps, started and announced; the test moves the time."""
    async with open_bench(request.param, servers_of) as bench:
        yield bench


@pytest.fixture(params=MAP_KINDS)
async def mapped_forgetful(
    request: pytest.FixtureRequest, servers_of: ServersOf
) -> AsyncIterator[Bench]:
    """Each engine with maps, with unused positions forgotten after META_LIFETIME."""
    async with open_bench(request.param, servers_of, META_LIFETIME) as bench:
        yield bench


OpenRedisBench = Callable[..., Any]
"""As `redis_bench`, with defaults; awaited, it gives a `RedisBench`."""


@pytest.fixture
async def open_redis(servers_of: ServersOf) -> AsyncIterator[OpenRedisBench]:
    """Start an engine over Redis: `await open_redis(prefix=..., meta=...)`.

    `kind` is one of `redis_bench.KINDS`; `servers` other than the shared ones.
    """
    stack = AsyncExitStack()

    async def start(
        kind: str = ONE_REDIS, servers: Sequence[RedisServer] = (), **arguments: Any
    ) -> RedisBench:
        return await stack.enter_async_context(
            redis_bench(kind, servers or servers_of(kind), **arguments)
        )

    yield start
    await stack.aclose()


@pytest.fixture
async def own(own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench) -> RedisBench:
    """An engine over a Redis of its own; its prefix is "p"."""
    bench: RedisBench = await open_redis(servers=[own_redis()], prefix="p")
    return bench


OpenNode = Callable[..., Any]
"""As `open_node`; awaited, it gives a `Bench`."""


@pytest.fixture
async def open_node(servers_of: ServersOf) -> AsyncIterator[OpenNode]:
    """Start an engine of a service: `await open_node(kind, prefix, node)`.

    `kind` is one of those with a cluster; `prefix` names the service.
    """
    stack = AsyncExitStack()

    async def start(kind: str, prefix: str, node: NodeInfo = NODE) -> Bench:
        if kind == POSTGRESQL:
            opened: Any = postgresql_bench(servers_of(kind), prefix, node)
        elif kind == POSTGRESQL_MODEL:
            opened = model_bench(prefix, node)
        else:
            opened = redis_bench(kind, servers_of(kind), prefix, node)
        bench: Bench = await stack.enter_async_context(opened)
        return bench

    yield start
    await stack.aclose()


@pytest.fixture(params=[*KINDS, MODEL, POSTGRESQL, POSTGRESQL_MODEL])
async def pair(request: pytest.FixtureRequest, open_node: OpenNode, unique: str) -> Pair:
    """Two engines of each kind, of one service."""
    one = await open_node(request.param, unique)
    return Pair(one, await open_node(request.param, unique, SECOND_NODE))


@pytest.fixture(params=[kind for kind in MAP_KINDS if kind != MEMORY])
async def mapped_pair(request: pytest.FixtureRequest, open_node: OpenNode, unique: str) -> Pair:
    """Two engines of each kind with maps, of one service."""
    one = await open_node(request.param, unique)
    return Pair(one, await open_node(request.param, unique, SECOND_NODE))


@pytest.fixture(params=KINDS)
async def redis_pair(
    request: pytest.FixtureRequest, open_redis: OpenRedisBench, unique: str
) -> RedisPair:
    """Two engines over each kind of Redis, with the same prefix."""
    one = await open_redis(request.param, prefix=unique)
    return RedisPair(one, await open_redis(request.param, prefix=unique, node=SECOND_NODE))


@pytest.fixture
async def bench(redis_server: RedisServer, unique: str) -> AsyncIterator[ChannelListBench]:
    connection = Connection(Host({"address": redis_server.url}), Timeouts())
    with redis_server.client() as client:
        key = f"{unique}:channels:N1"
        bench = ChannelListBench(Wire(connection, key), client, key)
        yield bench
        bench.wire.open.set()
        await bench.channel_list.close()
        await connection.close()
