"""Sharded publish/subscribe with a Redis Cluster: many slots on one connection for each server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path

import pytest

from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.errors import EngineUnavailable
from realtime.redis.cluster import LoopCluster
from realtime.redis.commands import Script, ScriptCall
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.sharded_pubsub import ShardedPubSub
from realtime.redis.slot_map import QUESTION, SlotMap
from realtime.redis.slots import slot_of
from tests.redis_cluster import RedisCluster, run
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.unit.parts import eventually

needs_redis_7 = pytest.mark.skipif(not has_sharded_pubsub(), reason="SSUBSCRIBE needs Redis 7")

PARTITIONS = Partitions(DEFAULT_PARTITIONS)
APPEND: Script[int] = Script.of("append", "return redis.call('RPUSH', KEYS[1], 'x')")


class Ear:
    """Subscribes, and keeps what it gets and is told."""

    def __init__(self, server: RedisServer) -> None:
        slots = [slot_of(tag) for tag in PARTITIONS.tags]
        host = Host({"address": server.url})
        self.cluster = LoopCluster(SlotMap([host], slots), Timeouts())
        self.messages: list[tuple[str, bytes]] = []
        self.lost: list[set[int]] = []
        self.restored: list[set[int]] = []

        def note(told: list[set[int]], indexes: Collection[int]) -> None:
            told.append(set(indexes))

        self.pubsub = ShardedPubSub(
            self.cluster,
            on_message=lambda name, data: self.messages.append((name, data)),
            on_lost=lambda indexes: note(self.lost, indexes),
            on_restored=lambda indexes: note(self.restored, indexes),
        )

    async def subscribe(self, name: str) -> None:
        await self.pubsub.parts[PARTITIONS.named(name)].subscribe(name)

    async def hears(self, name: str, data: str) -> None:
        """Publish and wait until it arrives."""
        route = self.cluster.routes[PARTITIONS.named(name)]
        assert await route.execute("SPUBLISH", name, data) == 1
        await eventually(lambda: (name, data.encode()) in self.messages)

    def all_restored(self) -> bool:
        return set[int]().union(*self.lost) == set[int]().union(*self.restored)

    async def close(self) -> None:
        await self.pubsub.close()
        await self.cluster.close()


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A cluster of which slots move and connections are cut."""
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster")).start()
    yield cluster
    cluster.kill()


@pytest.fixture
async def ear(moving: RedisCluster) -> AsyncIterator[Ear]:
    ear = Ear(moving.servers[0])
    yield ear
    await ear.close()


def names(unique: str, each: int = 1) -> list[str]:
    """Names in every partition."""
    return [f"{unique}{tag}{number}" for tag in PARTITIONS.tags for number in range(each)]


@needs_redis_7
async def test_slot_that_moves_is_subscribed_to_at_its_new_server(
    moving: RedisCluster, ear: Ear, unique: str
) -> None:
    stays, moves = names(unique)[:2]
    for name in (stays, moves):
        await ear.subscribe(name)
        await ear.hears(name, "before")
    source = moving.owner(slot_of(moves))
    target = next(each for each in moving.servers if each is not source)

    await asyncio.to_thread(moving.move, slot_of(moves), target)

    await eventually(lambda: bool(ear.restored) and ear.all_restored())
    assert set[int]().union(*ear.lost) == {PARTITIONS.named(moves)}
    for name in (stays, moves):
        await ear.hears(name, "after")


@needs_redis_7
async def test_names_after_a_move_are_subscribed_to_at_the_new_server(
    moving: RedisCluster, ear: Ear, unique: str
) -> None:
    """No name was there to tell that the slot moved."""
    first, second = f"{unique}{PARTITIONS.tags[5]}1", f"{unique}{PARTITIONS.tags[5]}2"
    await ear.subscribe(first)
    ear.pubsub.parts[5].unsubscribe(first)
    source = moving.owner(slot_of(first))
    target = next(each for each in moving.servers if each is not source)
    await asyncio.to_thread(moving.move, slot_of(first), target)

    await ear.subscribe(second)

    await ear.hears(second, "after")


@needs_redis_7
async def test_cut_connections_come_back_with_one_command_for_each_partition(
    moving: RedisCluster, ear: Ear, unique: str
) -> None:
    wanted = names(unique, each=20)
    await asyncio.gather(*map(ear.subscribe, wanted))
    for server in moving.servers:
        server.reset_command_calls()

    for server in moving.servers:
        server.kill_pubsub()
    await eventually(lambda: len(set[int]().union(*ear.lost)) == DEFAULT_PARTITIONS)
    await eventually(ear.all_restored)

    calls = sum(server.command_calls().get("ssubscribe", 0) for server in moving.servers)
    assert calls == DEFAULT_PARTITIONS
    assert len(ear.lost) <= len(moving.servers), "the slots of a server are lost together"
    for name in wanted[::300]:
        await ear.hears(name, "after")


@needs_redis_7
async def test_there_are_two_connections_to_each_server(
    moving: RedisCluster, ear: Ear, unique: str
) -> None:
    for name in names(unique):
        await ear.subscribe(name)
        await ear.hears(name, "x")

    for server in moving.servers:
        clients = run(server, "CLIENT", "LIST").decode()
        assert clients.count("name=realtime ") == 2


@needs_redis_7
async def test_name_that_is_unsubscribed_while_its_slot_moves_disturbs_no_other_slot(
    moving: RedisCluster, ear: Ear, unique: str
) -> None:
    """The server says that the name is gone, and refuses to unsubscribe from it, too."""
    source = moving.servers[1]
    first, second, third = [
        name for name in names(unique) if moving.owner(slot_of(name)) is source
    ][:3]
    await ear.subscribe(first)
    await ear.subscribe(second)

    moving.move(slot_of(first), moving.servers[2])  # the loop stands: it hears of that below
    ear.pubsub.parts[PARTITIONS.named(first)].unsubscribe(first)
    await ear.subscribe(third)

    await ear.hears(second, "after")
    await ear.hears(third, "after")
    assert {PARTITIONS.named(second), PARTITIONS.named(third)}.isdisjoint(
        set[int]().union(*ear.lost)
    )


@needs_redis_7
async def test_frozen_server_is_left_when_another_one_has_its_slots(
    tmp_path: Path, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = RedisCluster(tmp_path, replicas=1).start()
    frozen, *others = cluster.servers
    ear = Ear(others[0])
    try:
        name = next(name for name in names(unique) if cluster.owner(slot_of(name)) is frozen)
        await ear.subscribe(name)
        frozen.freeze()
        await eventually(
            lambda: all(
                frozen.port not in [places[0][1] for _, _, *places in run(each, *QUESTION)]
                for each in others
            )
        )

        await ear.cluster.load()
        await eventually(lambda: bool(ear.restored))

        await ear.hears(name, "after")
        assert "another server has the slot" in caplog.text
    finally:
        await ear.close()
        cluster.kill()


@needs_redis_7
async def test_names_are_unsubscribed_at_a_server_that_is_left(tmp_path: Path, unique: str) -> None:
    """A replica takes subscribers, too: of both servers, each message would come twice."""
    cluster = RedisCluster(tmp_path, replicas=1).start()
    ear = Ear(cluster.servers[0])
    try:
        name, other = names(unique)[0], f"{names(unique)[0]}other"
        await ear.subscribe(name)
        await ear.subscribe(other)
        primary = cluster.owner(slot_of(name))
        replica = cluster.servers[3 + cluster.servers.index(primary)]

        # as a server says that has not heard of a failover
        ear.cluster.map.moved(slot_of(name), ("127.0.0.1", replica.port))
        ear.cluster.on_loaded()
        await eventually(lambda: bool(ear.restored))

        await eventually(lambda: run(primary, "PUBSUB", "SHARDNUMSUB", name, other)[1::2] == [0, 0])
        run(primary, "SPUBLISH", name, "1")
        run(primary, "SPUBLISH", other, "2")
        await eventually(lambda: (other, b"2") in ear.messages)
        assert ear.messages == [(name, b"1"), (other, b"2")]
    finally:
        await ear.close()
        cluster.kill()


@needs_redis_7
async def test_cluster_that_was_made_anew_at_the_same_addresses_is_used(
    tmp_path: Path, unique: str
) -> None:
    """As where the disks of all servers were lost: their IDs are others, and no script is known."""
    cluster = RedisCluster(tmp_path).start()
    ear = Ear(cluster.servers[0])
    try:
        wanted = names(unique)[::40]
        await asyncio.gather(*map(ear.subscribe, wanted))
        route = ear.cluster.routes[PARTITIONS.named(wanted[0])]
        keys = [f"{wanted[0]}:list"]
        assert [await route.call(ScriptCall(APPEND, keys, [])) for _ in range(2)] == [1, 2]

        await asyncio.to_thread(cluster.make_anew)
        await eventually(lambda: bool(ear.lost) and ear.all_restored())

        assert [await route.call(ScriptCall(APPEND, keys, [])) for _ in range(2)] == [1, 2]
        for name in wanted:
            await ear.hears(name, "after")
    finally:
        await ear.close()
        cluster.kill()


@needs_redis_7
async def test_unsubscribed_name_is_silent_and_the_others_are_not(ear: Ear, unique: str) -> None:
    one, other = f"{unique}{PARTITIONS.tags[9]}1", f"{unique}{PARTITIONS.tags[9]}2"
    await ear.subscribe(one)
    await ear.subscribe(other)

    ear.pubsub.parts[9].unsubscribe(one)
    await ear.hears(other, "x")

    assert await ear.cluster.routes[9].execute("SPUBLISH", one, "x") == 0
    assert ear.lost == []


@pytest.mark.skipif(has_sharded_pubsub(), reason="it is about Redis 6.2")
async def test_server_that_is_too_old_is_named_as_the_reason(ear: Ear, unique: str) -> None:
    with pytest.raises(EngineUnavailable, match="needs Redis 7 or newer, or Valkey"):
        await ear.subscribe(names(unique)[0])
