"""A Redis Cluster with TLS, an authority of its own, permissions, and names for its servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.engine.base import Outgoing
from realtime.engine.redis.opening import RedisEngines
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from realtime.redis.slot_map import QUESTION
from realtime.redis.slots import slot_of
from tests.certificates import write_certificate_of_authority
from tests.engine.bench import KEPT
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis.permissions import EVERYTHING, allow, permissions, use_everything
from tests.engine.redis_bench import CLUSTER, RedisBench
from tests.redis_cluster import RedisCluster, run
from tests.redis_server import RedisServer, has_sharded_pubsub, has_tls
from tests.server import wait_until
from tests.tcp_proxy import TcpProxy
from tests.unit.parts import data, eventually

pytestmark = pytest.mark.skipif(
    not (has_sharded_pubsub() and has_tls()), reason="it is about Redis 7 or newer with TLS"
)

PASSWORD = "of-the-service"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A cluster whose certificate is valid for the name of the host, and not for its address."""
    certificates = tmp_path_factory.mktemp("certificates")
    write_certificate_of_authority(certificates, "localhost")
    arguments = (
        *("--cluster-announce-hostname", "localhost"),
        *("--cluster-preferred-endpoint-type", "hostname"),
    )
    cluster = RedisCluster(
        tmp_path_factory.mktemp("cluster"),
        password="of-operators",
        certificates=certificates,
        arguments=arguments,
    ).start()
    until_all_say(cluster, b"localhost", [server.port for server in cluster.servers])
    yield cluster
    cluster.kill()


@pytest.fixture
def addresses(guarded: RedisCluster, unique: str) -> str:
    """The option of a service whose user has the documented permissions.

    The first address says how to reach all of them.
    """
    for server in guarded.servers:
        allow(server, unique, [f">{PASSWORD}", *permissions(unique, cluster=True)])
    first, *others = guarded.servers
    return ",".join(
        [first.url_of(f"{unique}:{PASSWORD}"), *(f"localhost:{other.port}" for other in others)]
    )


async def test_documented_permissions_are_enough_in_a_cluster(
    guarded: RedisCluster, addresses: str, open_redis: OpenRedisBench, unique: str
) -> None:
    arguments: dict[str, Any] = {"servers": guarded.servers, "prefix": unique, "meta": EVERYTHING}
    await use_everything(await open_redis(CLUSTER, cluster=addresses.split(",")[0], **arguments))


class Worker:
    """A thread without an event loop, and its store."""

    def __init__(self, addresses: str, prefix: str) -> None:
        options = {"redis_cluster_addrs": addresses, "redis_prefix": prefix}
        engines, config = RedisEngines(), load(options)
        self._broker = engines.blocking_store(config).broker
        self.bus = engines.redis(config)

    async def publish(self, channel: str, text: str) -> None:
        def send() -> None:
            # coroutines of a blocking store never suspend
            asyncio.run(self._broker.publish(Outgoing(channel, Publication(data(text)), KEPT)))

        await asyncio.to_thread(send)


Naming = Callable[[RedisCluster], Any]


@asynccontextmanager
async def hostnames(cluster: RedisCluster) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def unknown_endpoints(cluster: RedisCluster) -> AsyncIterator[None]:
    """The servers give their ports only: their names are those by which they were asked."""
    prefer(cluster, "unknown-endpoint", None)
    try:
        yield
    finally:
        prefer(cluster, "hostname", b"localhost")


@asynccontextmanager
async def translated_ports(cluster: RedisCluster) -> AsyncIterator[None]:
    """Clients reach the servers at other ports than those at which these listen."""
    async with AsyncExitStack() as stack:
        proxies = [
            await stack.enter_async_context(TcpProxy(f"redis://127.0.0.1:{server.port}"))
            for server in cluster.servers
        ]
        announce(
            cluster, [int(proxy.url.rpartition(":")[2].partition("/")[0]) for proxy in proxies]
        )
        try:
            yield
        finally:
            announce(cluster, [server.port for server in cluster.servers])
        assert all(proxy.connections for proxy in proxies)


def prefer(cluster: RedisCluster, kind: str, name: bytes | None) -> None:
    """Let the servers be named by their hostname, their address or not at all."""
    for server in cluster.servers:
        run(server, "CONFIG", "SET", "cluster-preferred-endpoint-type", kind)
    until_all_say(cluster, name, [server.port for server in cluster.servers])


def announce(cluster: RedisCluster, ports: Sequence[int]) -> None:
    """Let each server be reached at another port."""
    for server, port in zip(cluster.servers, ports, strict=True):
        run(server, "CONFIG", "SET", "cluster-announce-tls-port", port)
    until_all_say(cluster, b"localhost", ports)


def until_all_say(cluster: RedisCluster, name: bytes | None, ports: Sequence[int]) -> None:
    """Wait until each server gives this name to all, and these ports."""

    def says(server: RedisServer) -> bool:
        places = {tuple(primary[:2]) for _, _, primary, *_ in run(server, *QUESTION)}
        return places == {(name, port) for port in ports}

    wait_until(lambda: all(map(says, cluster.servers)), what="the names of the servers")


@pytest.mark.parametrize("naming", [hostnames, unknown_endpoints, translated_ports])
async def test_servers_are_reached_by_the_names_that_they_give(
    guarded: RedisCluster, addresses: str, open_redis: OpenRedisBench, unique: str, naming: Naming
) -> None:
    """Also where they redirect: ASK and MOVED name servers, too."""
    async with naming(guarded):
        engine: RedisBench = await open_redis(
            CLUSTER, servers=guarded.servers, prefix=unique, cluster=addresses.split(",")[0]
        )
        worker = Worker(addresses, unique)
        channels = [f"{unique}{number}" for number in range(6)]
        for channel in channels:
            await engine.broker.subscribe(channel)
            await worker.publish(channel, "1")
            await engine.publish(channel, 2)
            assert [p.data.raw for p in await engine.received(channel, 2)] == [b"1", b"2"]

        shard, key = (
            engine.engine.shards.shard(channels[0]),
            f"{engine.keys.stream(channels[0])[0]}:new",
        )
        source = guarded.owner(slot_of(key))
        target = next(each for each in guarded.servers if each is not source)
        guarded.begin_move(slot_of(key), target)
        await asyncio.to_thread(guarded.move_keys, slot_of(key), source, target)
        pushed = ("RPUSH", key, "asked")
        assert await engine.layer.bus.call(shard, pushed) == 1
        assert await asyncio.to_thread(worker.bus.blocking(shard).execute, *pushed) == 2
        guarded.end_move(slot_of(key), target)
        await eventually(lambda: bool(engine.receiver.resumptions))

        await worker.publish(channels[0], "3")
        await engine.publish(channels[0], 4)
        received = [int(p.data.raw) for p in await engine.received(channels[0], 4)]
        assert received == [1, 2, 3, 4]


async def test_address_for_which_a_certificate_is_not_valid_is_named_as_the_reason(
    guarded: RedisCluster, addresses: str, unique: str
) -> None:
    prefer(guarded, "ip", b"127.0.0.1")
    try:
        with pytest.raises(EngineUnavailable, match=r"not valid for '127\.0\.0\.1'"):
            await Worker(addresses, unique).publish(unique, "1")
    finally:
        prefer(guarded, "hostname", b"localhost")
