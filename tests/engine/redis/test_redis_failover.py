"""The Sentinels name another master, and the old one goes on to accept commands.

What it acknowledges after a node has told its clients would be lost, and nobody would be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from realtime.engine.base import Outgoing, Published
from realtime.engine.once import Once
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.engine import RedisEngine, RedisStore
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication, StreamPosition
from realtime.redis import blocking, master
from realtime.redis.hosts import Place
from realtime.serving import run_by_hand
from tests.engine.bench import KEPT, RecordingReceiver, comes_true
from tests.redis.scripted_server import ScriptedServer, naming
from tests.redis_sentinel import Sentinel
from tests.redis_server import RedisServer
from tests.unit.parts import data, position_of

PER_RUN = MetaSettings(epoch_per_run=True)
OFTEN, NEVER = 0.05, 3600.0
"""Seconds between two questions to the Sentinels."""

Asking = Callable[..., None]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Set how long connections of a module, or of both, wait from their next question on."""

    def set_interval(seconds: float, *modules: ModuleType) -> None:
        for module in modules or (master, blocking):
            monkeypatch.setattr(module, "MASTER_CHECK_INTERVAL", seconds)

    return set_interval


class Process:
    """A node, or a publisher, on connections of its own."""

    def __init__(self, place: Place, prefix: str, meta: MetaSettings) -> None:
        entry = {"sentinels": [place], "master_name": "mymaster"}
        self.bus: RedisBus = RedisChannelLayer(hosts=[entry], prefix=prefix).bus
        self.engine = RedisEngine(self.bus, prefix, meta)
        self.receiver = RecordingReceiver()
        self.threads = RedisStore(self.bus, prefix, meta)
        self.channel = prefix

    async def started(self) -> Process:
        """This process, as a node."""
        await self.engine.start(self.receiver, self.receiver.uid)
        return self

    async def publish(
        self, number: int, *, way: str = "loop", **options: Any
    ) -> StreamPosition | None:
        """Publish on the event loop, or in a thread without one."""
        store = self.engine if way == "loop" else self.threads
        publication = Publication(data(str(number)), uid=str(number))
        publishing = store.broker.publish(Outgoing(self.channel, publication, KEPT, **options))
        if way == "loop":
            return (await publishing).position
        published: Published = await asyncio.to_thread(run_by_hand, publishing)
        return published.position

    async def epoch(self) -> str:
        return (await position_of(self.engine.broker, self.channel)).epoch

    async def has_resumed(self) -> bool:
        """Whether it receives from another master: its clients are told next."""
        return bool(self.receiver.resumptions)


@pytest.fixture
async def process(unique: str) -> AsyncIterator[Callable[..., Process]]:
    """Make processes of one service: `process(place_of_the_sentinel)`."""
    made: list[Process] = []

    def make(place: Place, meta: MetaSettings = PER_RUN) -> Process:
        made.append(Process(place, unique, meta))
        return made[-1]

    yield make
    for each in made:
        await each.engine.stop()
        each.bus.close_blocking()


@pytest.fixture
async def sentinel_of() -> AsyncIterator[Callable[..., Awaitable[Place]]]:
    """Start a Sentinel that names the first of some servers: `await sentinel_of(servers)`."""
    started: list[ScriptedServer] = []

    async def start(servers: list[RedisServer]) -> Place:
        started.append(ScriptedServer(naming(servers)))
        await started[-1].start()
        return started[-1].place

    yield start
    for each in started:
        await each.stop()


@pytest.fixture
async def two(
    own_redis: Callable[..., RedisServer], sentinel_of: Callable[..., Awaitable[Place]]
) -> tuple[list[RedisServer], Place]:
    """A master and its replica, and the place of a Sentinel that names the first of them."""
    servers = [own_redis(), own_redis()]
    with servers[0].client() as primary, servers[1].client() as replica:
        primary.config_set("repl-diskless-sync-delay", 0)
        replica.execute_command("REPLICAOF", "127.0.0.1", str(servers[0].port))

        async def is_in_sync() -> bool:
            return bool(replica.info("replication").get("master_link_status") == "up")

        await comes_true(is_in_sync, 20.0)
    return servers, await sentinel_of(servers)


def promote(servers: list[RedisServer]) -> None:
    """Make the other one the master, and have the Sentinel name it. The old one goes on."""
    servers.reverse()
    with servers[0].client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")


@pytest.mark.parametrize("meta", [PER_RUN, MetaSettings()], ids=["per-run", "plain"])
@pytest.mark.parametrize("way", ["loop", "thread"])
async def test_old_master_acknowledges_nothing_once_a_node_has_the_new_one(
    own_sentinel: Callable[..., Sentinel],
    process: Callable[..., Process],
    asking: Asking,
    meta: MetaSettings,
    way: str,
) -> None:
    sentinel = await asyncio.to_thread(own_sentinel)
    host, port = sentinel.address.split(":")
    asking(NEVER)
    publisher = process((host, int(port)), meta)
    before = await publisher.publish(1, way=way)
    asking(OFTEN)
    node = await process((host, int(port)), meta).started()
    await node.epoch()

    await asyncio.to_thread(sentinel.planned_failover)
    await comes_true(node.has_resumed, 20.0)

    with pytest.raises(EngineUnavailable, match="another server has become the master"):
        await publisher.publish(2, way=way)
    after = await publisher.publish(3, way=way)
    kept = await node.engine.broker.history(node.channel)
    assert before is not None
    assert (kept.position, [each.uid for each in kept.publications]) == (after, ["1", "3"])
    assert (kept.position.epoch != before.epoch) == meta.epoch_per_run


async def test_node_reads_at_the_new_master_as_soon_as_it_receives_from_it(
    two: tuple[list[RedisServer], Place],
    process: Callable[..., Process],
    asking: Asking,
) -> None:
    """Read at the old one, its position would be right, and nobody told."""
    servers, place = two
    asking(OFTEN)
    node = await process(place).started()
    before = await node.epoch()
    for number in range(1, 4):
        node.receiver.resumptions.clear()

        promote(servers)
        await comes_true(node.has_resumed)

        assert await node.epoch() != before, number
        with servers[1].client() as old:
            old.execute_command("REPLICAOF", "127.0.0.1", str(servers[0].port))
        before = await node.epoch()


async def test_master_that_comes_back_accepts_publications(
    two: tuple[list[RedisServer], Place],
    process: Callable[..., Process],
    asking: Asking,
) -> None:
    """An overloaded Sentinel may find the new master dead before it has told the old one."""
    servers, place = two
    asking(OFTEN)
    node = await process(place).started()
    promote(servers)
    await comes_true(node.has_resumed)
    node.receiver.resumptions.clear()
    asking(NEVER, blocking)
    publisher = process(place)
    await publisher.publish(1, way="thread")

    servers.reverse()
    await comes_true(node.has_resumed)

    with pytest.raises(EngineUnavailable, match="another server has become the master"):
        await publisher.publish(2, way="thread")
    assert await publisher.publish(3, way="thread") == await position_of(
        node.engine.broker, node.channel
    )


async def test_master_that_sentinels_named_wrongly_accepts_publications_soon(
    two: tuple[list[RedisServer], Place],
    process: Callable[..., Process],
    asking: Asking,
) -> None:
    """The node that has sealed it dies, and those that are left know of no other master."""
    servers, place = two
    asking(OFTEN)
    node = await process(place).started()
    promote(servers)
    await comes_true(node.has_resumed)
    node.receiver.resumptions.clear()
    with servers[1].client() as old:
        assert old.ttl(node.bus.seal) > 10

    servers.reverse()
    await comes_true(node.has_resumed)
    await node.engine.stop()
    servers.reverse()

    publisher = process(place)
    with pytest.raises(EngineUnavailable, match="another server has become the master"):
        await publisher.publish(1, way="thread")
    with servers[0].client() as promoted:
        assert 0 < promoted.ttl(node.bus.seal) <= 10


async def test_server_that_is_no_relative_of_the_new_master_is_not_sealed(
    own_redis: Callable[..., RedisServer],
    sentinel_of: Callable[..., Awaitable[Place]],
    process: Callable[..., Process],
    asking: Asking,
) -> None:
    """A Sentinel that is wrong must not stop a service."""
    servers = [own_redis(), own_redis()]
    place = await sentinel_of(servers)
    asking(NEVER)
    publisher = process(place)
    await publisher.publish(1)
    asking(OFTEN)
    node = await process(place).started()

    servers.reverse()
    await comes_true(node.has_resumed)

    again = await publisher.publish(2)
    assert again is not None
    assert again.offset == 2


async def test_old_master_that_does_not_answer_is_left(
    two: tuple[list[RedisServer], Place],
    process: Callable[..., Process],
    asking: Asking,
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers, place = two
    asking(OFTEN)
    node = await process(place).started()
    servers[0].freeze()

    promote(servers)
    await comes_true(node.has_resumed, 20.0)

    assert await node.publish(1) is not None
    assert "the old one could not be sealed" in caplog.text


@pytest.mark.parametrize(
    "options",
    [{"once": Once("key")}, {"version": Version(7)}, {"once": Once("key"), "version": Version(7)}],
    ids=["once", "version", "both"],
)
async def test_key_and_version_count_over_sentinels(
    two: tuple[list[RedisServer], Place],
    process: Callable[..., Process],
    options: dict[str, Any],
) -> None:
    """The script finds the seal behind the key that it remembers, where there is one."""
    publisher = process(two[1])

    first = await publisher.publish(1, **options)
    second = await publisher.publish(2, **options)

    kept = await publisher.engine.broker.history(publisher.channel)
    assert first == second
    assert [each.uid for each in kept.publications] == ["1"]
