"""Commands to a Redis Cluster whose slots move: from an event loop, and from a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from realtime.errors import EngineUnavailable, NoReply
from realtime.redis.blocking_cluster import BlockingCluster, BlockingRoute, Routed, run_many
from realtime.redis.cluster import LoopCluster, Route
from realtime.redis.commands import Request, Script, ScriptCall, Wait
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.slot_map import SlotMap
from realtime.redis.slots import slot_of
from tests.redis_cluster import RedisCluster, nodes, run
from tests.redis_server import RedisServer, has_sharded_pubsub
from tests.server import wait_until
from tests.unit.parts import eventually

pytestmark = pytest.mark.skipif(not has_sharded_pubsub(), reason="a cluster needs Redis 7")

LOOP, THREAD = "event loop", "thread"
APPEND_BOTH: Script[int] = Script.of(
    "both", "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])"
)


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A cluster whose slots move. A test has a slot of its own, see `unique`."""
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster")).start()
    yield cluster
    cluster.kill()


def slot_map(server: RedisServer, *tags: str) -> SlotMap:
    """The slots of tags, asked of a server."""
    return SlotMap([Host({"address": server.url})], [slot_of(tag) for tag in tags])


class Way:
    """A route to the slot of a test, with the same methods in both kinds of processes."""

    def __init__(self, route: Route | BlockingRoute, tag: str) -> None:
        self.route = route
        self.slot = slot_of(tag)

    async def __call__(self, name: str, *args: Any) -> Any:
        """Call a method of the route."""
        method = getattr(self.route, name)
        if isinstance(self.route, Route):
            return await method(*args)
        return await asyncio.to_thread(method, *args)


Open = Callable[..., Way]


@pytest.fixture(params=[LOOP, THREAD])
async def open_way(
    request: pytest.FixtureRequest, moving: RedisCluster, unique: str
) -> AsyncIterator[Open]:
    """Open a way to the slot of the test; the first server knows the others."""
    opened: list[LoopCluster | BlockingCluster] = []

    def start(server: RedisServer | None = None, timeouts: Timeouts = Timeouts()) -> Way:  # noqa: B008
        slots = slot_map(server or moving.servers[0], unique)
        if request.param == LOOP:
            cluster = LoopCluster(slots, timeouts)
            opened.append(cluster)
            return Way(cluster.routes[0], unique)
        blocking = BlockingCluster(slots, timeouts)
        opened.append(blocking)
        return Way(BlockingRoute(blocking, slots.slots[0]), unique)

    yield start
    for each in opened:
        closing: Awaitable[None] | None = each.close()
        if inspect.isawaitable(closing):
            await closing


def other_than(moving: RedisCluster, server: RedisServer) -> RedisServer:
    return next(each for each in moving.servers if each is not server)


async def test_commands_go_to_the_server_of_the_slot_wherever_it_moves(
    moving: RedisCluster, open_way: Open, unique: str
) -> None:
    way = open_way()
    for number in range(4):
        await way("execute", "RPUSH", f"{{{unique}}}", number)
        target = other_than(moving, moving.owner(way.slot))
        await asyncio.to_thread(moving.move, way.slot, target)

    assert await way("execute", "LRANGE", f"{{{unique}}}", 0, -1) == [b"0", b"1", b"2", b"3"]
    assert (
        await way("call", ScriptCall(APPEND_BOTH, [f"{{{unique}}}", f"{{{unique}}}2"], ["x"])) == 1
    )


async def test_keys_that_have_moved_are_found_while_the_slot_is_moving(
    moving: RedisCluster, open_way: Open, unique: str
) -> None:
    way = open_way()
    key = f"{{{unique}}}"
    source = moving.owner(way.slot)
    target = other_than(moving, source)
    await way("execute", "RPUSH", key, "before")
    moving.begin_move(way.slot, target)
    await asyncio.to_thread(moving.move_keys, way.slot, source, target)

    await way("execute", "RPUSH", key, "meanwhile")
    await way("call", ScriptCall(APPEND_BOTH, [key, key], ["by script"]))
    if isinstance(way.route, BlockingRoute):
        batch: list[Request] = [
            ("RPUSH", key, "batch"),
            ScriptCall(APPEND_BOTH, [key, key], ["script"]),
        ]
        routed = [Routed(way.route, each) for each in batch]
        assert await asyncio.to_thread(run_many, routed) == [5, 7]
    moving.end_move(way.slot, target)

    entries = await way("execute", "LRANGE", key, 0, 3)
    assert entries == [b"before", b"meanwhile", b"by script", b"by script"]


async def move_first(
    moving: RedisCluster, way: Way, keys: Sequence[str]
) -> tuple[RedisServer, RedisServer]:
    """Begin to move the slot, and move the first of two keys; return source and target."""
    source = moving.owner(way.slot)
    target = other_than(moving, source)
    for key in keys:
        await way("execute", "RPUSH", key, "before")
    moving.begin_move(way.slot, target)
    run(source, "MIGRATE", "127.0.0.1", target.port, keys[0], 0, 5000)
    return source, target


async def test_a_call_for_keys_on_both_servers_waits_until_the_slot_has_moved(
    moving: RedisCluster, open_way: Open, unique: str
) -> None:
    way = open_way()
    keys = [f"{{{unique}}}{number}" for number in range(2)]
    source, target = await move_first(moving, way, keys)

    run(source, "CONFIG", "RESETSTAT")
    call = asyncio.create_task(way("call", ScriptCall(APPEND_BOTH, keys, ["after"])))
    await eventually(lambda: b"errorstat_TRYAGAIN" in run(source, "INFO", "errorstats"))
    assert not call.done()
    await asyncio.to_thread(moving.move_keys, way.slot, source, target)
    moving.end_move(way.slot, target)

    assert await call == 2


async def test_a_call_gives_up_when_the_slot_moves_for_too_long(
    moving: RedisCluster, open_way: Open, unique: str
) -> None:
    way = open_way(timeouts=Timeouts(1, 0.2))
    keys = [f"{{{unique}}}{number}" for number in range(2)]
    source, target = await move_first(moving, way, keys)

    with pytest.raises(EngineUnavailable, match="TRYAGAIN"):
        await way("call", ScriptCall(APPEND_BOTH, keys, ["never"]))

    await asyncio.to_thread(moving.move_keys, way.slot, source, target)
    moving.end_move(way.slot, target)
    assert await way("execute", "LLEN", keys[0]) == 1


async def test_replicas_are_waited_for_at_the_server_of_the_slot(
    moving: RedisCluster, open_way: Open, unique: str
) -> None:
    way = open_way()
    keys = [f"{{{unique}}}"] * 2
    await asyncio.to_thread(moving.move, way.slot, other_than(moving, moving.owner(way.slot)))

    assert await way("call", ScriptCall(APPEND_BOTH, keys, ["x"]), Wait(0, 100)) == 2
    with pytest.raises(EngineUnavailable, match="0 of 1 replicas"):
        await way("call", ScriptCall(APPEND_BOTH, keys, ["x"]), Wait(1, 1))


def test_thread_does_not_wait_for_the_server_that_failed_to_say_where_its_slot_is(
    moving: RedisCluster, unique: str
) -> None:
    slots = SlotMap([Host({"address": each.url}) for each in moving.servers], [slot_of(unique)])
    cluster = BlockingCluster(slots, Timeouts(1, 0.2))
    route = BlockingRoute(cluster, slots.slots[0])
    route.execute("PING")
    frozen = moving.owner(slots.slots[0])
    connections = connections_to(frozen)

    frozen.freeze()
    with pytest.raises(NoReply):
        route.execute("RPUSH", f"{{{unique}}}", "x")
    frozen.resume()

    assert connections_to(frozen) == connections + 1, "and that is the one of this question"
    cluster.close()
    moving.until_owned(slots.slots[0])


def test_thread_closes_connections_to_a_server_without_slots(
    moving: RedisCluster, unique: str
) -> None:
    slot = slot_of(unique)
    cluster = BlockingCluster(slot_map(moving.servers[0], unique), Timeouts())
    route = BlockingRoute(cluster, slot)
    key = f"{{{unique}}}"
    before = moving.owner(slot)
    route.execute("RPUSH", key, 1)
    connection = str(cluster.client(route.place()).execute("CLIENT", "ID"))

    moving.move(slot, other_than(moving, before))
    assert route.execute("RPUSH", key, 2) == 2

    with before.client() as client:
        wait_until(lambda: connection not in {each["id"] for each in client.client_list()})
    cluster.close()


def connections_to(server: RedisServer) -> int:
    """Return how many connections of clients the server has had."""
    with server.client() as client:
        return int(client.info("stats")["total_connections_received"])


async def test_calls_of_one_loop_keep_their_order_while_the_slot_moves(
    moving: RedisCluster, unique: str
) -> None:
    cluster = LoopCluster(slot_map(moving.servers[0], unique), Timeouts())
    [route] = cluster.routes
    key = f"{{{unique}}}"
    slot = slot_of(unique)
    calls: list[asyncio.Task[Any]] = []

    def move() -> None:
        for _ in range(3):
            moving.move(slot, other_than(moving, moving.owner(slot)))

    moves = asyncio.create_task(asyncio.to_thread(move))
    while not moves.done():
        calls += [
            asyncio.create_task(route.execute("RPUSH", key, len(calls) + n)) for n in range(20)
        ]
        await asyncio.sleep(0.001)
    await asyncio.gather(moves, *calls)

    kept = await route.execute("LRANGE", key, 0, -1)
    await cluster.close()
    assert [int(entry) for entry in kept] == list(range(len(calls)))


async def test_reply_is_awaited_from_a_server_that_the_new_map_does_not_name(
    moving: RedisCluster, tmp_path: Path, unique: str
) -> None:
    """The first slot of a new server is moving to it."""
    new = RedisServer(tmp_path, arguments=moving.arguments).start()
    run(new, "CLUSTER", "MEET", "127.0.0.1", moving.servers[0].port)
    source = moving.owner(slot_of(unique))
    await eventually(lambda: moving.id_of(new) in str(nodes(source)))
    await eventually(lambda: b"cluster_state:ok" in run(new, "CLUSTER", "INFO"))
    cluster = LoopCluster(slot_map(source, unique), Timeouts())
    [route] = cluster.routes
    moving.begin_move(slot_of(unique), new)
    assert await route.execute("RPUSH", f"{{{unique}}}", 1) == 1

    run(new, "CLIENT", "PAUSE", 60_000, "WRITE")
    call = asyncio.create_task(route.execute("RPUSH", f"{{{unique}}}", 2))
    await eventually(lambda: b"blocked_clients:1" in run(new, "INFO", "clients"))
    await cluster.load()
    run(new, "CLIENT", "UNPAUSE")

    assert await call == 2
    await cluster.close()
    for server in moving.servers:
        run(server, "CLUSTER", "SETSLOT", slot_of(unique), "STABLE")
        run(server, "CLUSTER", "FORGET", moving.id_of(new))
    new.kill()


async def test_slots_without_a_server_leave_the_others_alone(tmp_path: Path) -> None:
    partly = RedisCluster(tmp_path, 1, arguments=("--cluster-require-full-coverage", "no"))
    [server] = partly.start().servers
    slots = [slot_of("served"), slot_of("unserved")]
    run(server, "CLUSTER", "DELSLOTS", slots[1])
    cluster = LoopCluster(slot_map(server, "served", "unserved"), Timeouts())
    served, unserved = cluster.routes
    blocking = BlockingCluster(slot_map(server, "served", "unserved"), Timeouts())

    def works(slot: int, name: str) -> bool:
        try:
            return bool(BlockingRoute(blocking, slot).execute("RPUSH", name, 1))
        except EngineUnavailable:
            return False

    assert await served.execute("RPUSH", "served", 1) == 1
    assert works(slots[0], "served")
    with pytest.raises(EngineUnavailable, match="has no server"):
        await unserved.execute("RPUSH", "unserved", 1)
    assert not works(slots[1], "unserved")

    run(server, "CLUSTER", "ADDSLOTS", slots[1])

    await eventually(lambda: works(slots[1], "unserved"))
    await cluster.load()
    assert await unserved.execute("LLEN", "unserved") == 1
    await cluster.close()
    blocking.close()
    partly.kill()


async def test_a_server_that_is_no_cluster_is_named_as_the_reason(
    redis_server: RedisServer, open_way: Open
) -> None:
    way = open_way(redis_server)
    with pytest.raises(EngineUnavailable, match="redis_cluster_addrs names a Redis that is no"):
        await way("execute", "PING")


async def test_closed_cluster_refuses_calls(moving: RedisCluster, unique: str) -> None:
    cluster = LoopCluster(slot_map(moving.servers[0], unique), Timeouts())
    await cluster.routes[0].execute("PING")
    await cluster.close()
    with pytest.raises(EngineUnavailable, match="closed here"):
        await cluster.routes[0].execute("PING")
