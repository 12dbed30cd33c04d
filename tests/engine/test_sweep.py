"""Two nodes of one service, one of which dies: the ends of what was there are told once."""

from __future__ import annotations

from collections import Counter

import pytest

from realtime.cluster.dead_nodes import CLAIM
from realtime.engine.channel_list import MAX_NAMES_PER_STEP
from realtime.engine.lists import Kind
from realtime.engine.nodes import NodeInfo
from realtime.engine.redis import lists
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE, Bench, Pair
from tests.engine.conftest import OpenNode, OpenRedisBench
from tests.engine.postgresql_bench import POSTGRESQL
from tests.engine.redis_bench import KINDS, ONE_REDIS, SHARDS

THIRD_NODE = NodeInfo("N3", "third", "1.0", 0, 0, 0, 0)


@pytest.fixture(params=[ONE_REDIS, KINDS[-1], POSTGRESQL])
def kind_of_engine(request: pytest.FixtureRequest) -> str:
    """One Redis, and one whose keys have hash tags: other kinds run the same scripts."""
    kind: str = request.param
    return kind


@pytest.fixture
async def pair(open_node: OpenNode, kind_of_engine: str, unique: str) -> Pair:
    """Two engines of one service."""
    one = await open_node(kind_of_engine, unique)
    return Pair(one, await open_node(kind_of_engine, unique, SECOND_NODE))


async def add(bench: Bench, kind: Kind, *names: str) -> None:
    """List names, and wait until that is written."""
    for name in names:
        bench.engine.lists.add(kind, name)
    await bench.idle()


async def discard(bench: Bench, kind: Kind, *names: str) -> None:
    """List names no longer, and wait until that is written."""
    for name in names:
        bench.engine.lists.discard(kind, name)
    await bench.idle()


async def die(pair: Pair) -> None:
    """Let the first node send no more heartbeats, until it counts as dead."""
    await pair.one.elapse(NODE_LIFETIME + 1)
    await pair.other.cluster.announce(SECOND_NODE, NODE_LIFETIME)


async def sweep(bench: Bench) -> dict[Kind, list[str]]:
    """Sweep as long as there is something; returns the names of each kind."""
    found: dict[Kind, list[str]] = {kind: [] for kind in Kind}
    number = 0
    while (swept := await bench.engine.lists.sweep(f"{bench.receiver.uid}:{number}")) is not None:
        assert len(swept.names) <= MAX_NAMES_PER_STEP
        found[swept.kind] += swept.names
        number += 1
    return found


@pytest.mark.parametrize("kind", Kind)
async def test_names_of_a_dead_node_end_once(pair: Pair, kind: Kind) -> None:
    names = [f"n{number}" for number in range(450)]
    await add(pair.one, kind, *names)
    await die(pair)

    found = await sweep(pair.other)

    assert sorted(found[kind]) == sorted(names)
    assert (await sweep(pair.other))[kind] == []


async def test_names_that_another_node_lists_go_on(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "both", "one")
    await add(pair.other, Kind.USERS, "both", "other")
    await die(pair)

    assert (await sweep(pair.other))[Kind.USERS] == ["one"]

    assert sorted(await pair.other.engine.lists.names(Kind.USERS)) == ["both", "other"]
    await discard(pair.other, Kind.USERS, "both")
    assert pair.other.receiver.lasts[Kind.USERS] == ["both"]


@pytest.mark.parametrize("at_once", [0, lists.MAX_NAMES_OF_UNION], ids=["in parts", "at once"])
async def test_names_of_all_nodes_are_each_named_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(lists, "MAX_NAMES_OF_UNION", at_once)
    names = [f"n{number}" for number in range(2 * MAX_NAMES_PER_STEP + 1)]
    await add(pair.one, Kind.USERS, "both", *names)
    await add(pair.other, Kind.USERS, "both", "other")

    found = await pair.one.engine.lists.names(Kind.USERS)

    assert sorted(found) == sorted(["both", "other", *names])
    assert await pair.one.engine.lists.size(Kind.USERS) == len(names) + 2


async def test_living_node_is_not_swept(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a")
    assert await pair.other.engine.lists.sweep("attempt") is None
    assert await pair.other.engine.lists.listed(Kind.USERS, ["a"]) == [True]


async def test_dead_node_is_out_before_it_is_swept(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a")
    await die(pair)
    assert await pair.other.engine.lists.listed(Kind.USERS, ["a"]) == [False]
    assert list(await pair.other.engine.lists.names(Kind.USERS)) == []


async def test_user_who_comes_back_before_the_sweep_was_never_away(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a")
    await die(pair)
    await add(pair.other, Kind.USERS, "a")
    assert pair.other.receiver.firsts[Kind.USERS] == []
    assert (await sweep(pair.other))[Kind.USERS] == []


async def test_end_at_a_living_node_waits_for_the_sweep_of_the_dead_one(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a")
    await add(pair.other, Kind.USERS, "a")
    await die(pair)

    await discard(pair.other, Kind.USERS, "a")

    assert pair.other.receiver.lasts[Kind.USERS] == []
    assert (await sweep(pair.other))[Kind.USERS] == ["a"]


async def test_of_two_dead_nodes_the_last_sweep_tells(
    pair: Pair, open_node: OpenNode, kind_of_engine: str, unique: str
) -> None:
    await add(pair.one, Kind.USERS, "a", "b")
    await add(pair.other, Kind.USERS, "a", "c")
    for bench in pair:
        await bench.engine.stop()
    await pair.one.elapse(NODE_LIFETIME + 1)
    third = await open_node(kind_of_engine, unique, THIRD_NODE)

    found = await sweep(third)

    assert Counter(found[Kind.USERS]) == Counter("abc")


async def test_repeated_attempt_returns_the_same_names(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a", "b")
    await die(pair)
    lists = pair.other.engine.lists

    first = await lists.sweep("one")

    assert first is not None
    assert sorted(first.names) == ["a", "b"]
    assert await lists.sweep("one") == first
    assert await lists.sweep("two") is None


async def test_frozen_node_that_was_swept_lists_its_names_anew(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a", "b")
    await die(pair)
    await sweep(pair.other)

    await pair.one.cluster.announce(NODE, NODE_LIFETIME)

    assert sorted(pair.one.receiver.firsts[Kind.USERS]) == ["a", "a", "b", "b"]
    await discard(pair.one, Kind.USERS, "a")
    assert pair.one.receiver.lasts[Kind.USERS] == ["a"]


async def test_what_ends_at_a_frozen_node_was_told_already(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a", "b")
    await die(pair)
    assert sorted((await sweep(pair.other))[Kind.USERS]) == ["a", "b"]

    await discard(pair.one, Kind.USERS, "a")  # it does not know yet
    await pair.one.cluster.announce(NODE, NODE_LIFETIME)

    assert pair.one.receiver.lasts[Kind.USERS] == []
    assert pair.one.receiver.firsts[Kind.USERS].count("b") == 2


async def test_frozen_node_that_was_swept_in_part_tells_only_of_that_part(pair: Pair) -> None:
    names = [f"n{number}" for number in range(300)]
    await add(pair.one, Kind.USERS, *names)
    await die(pair)
    swept = await pair.other.engine.lists.sweep("attempt")
    assert swept is not None
    assert len(swept.names) == MAX_NAMES_PER_STEP

    await pair.one.cluster.announce(NODE, NODE_LIFETIME)

    assert await pair.other.engine.lists.sweep("another") is None
    again = Counter(pair.one.receiver.firsts[Kind.USERS])
    assert {name for name, times in again.items() if times == 2} == set(swept.names)


async def test_users_in_channels_may_be_held_for_a_time(pair: Pair) -> None:
    await add(pair.one, Kind.CHANNEL_USERS, "held")
    await add(pair.one, Kind.USERS, "a")
    await pair.one.cluster.withdraw(NODE, 5.0)

    assert (await sweep(pair.other))[Kind.CHANNEL_USERS] == []
    await add(pair.other, Kind.CHANNEL_USERS, "held")
    assert pair.other.receiver.firsts[Kind.CHANNEL_USERS] == []
    await discard(pair.other, Kind.CHANNEL_USERS, "held")
    assert pair.other.receiver.lasts[Kind.CHANNEL_USERS] == []
    await pair.one.elapse(5.1)
    await pair.other.cluster.announce(SECOND_NODE, NODE_LIFETIME)

    assert (await sweep(pair.other))[Kind.CHANNEL_USERS] == ["held"]


async def test_node_that_withdraws_leaves_nothing_to_sweep(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "a")
    await add(pair.one, Kind.CHANNEL_USERS, "b")
    await pair.one.cluster.withdraw(NODE)
    await die(pair)
    assert await sweep(pair.other) == {kind: [] for kind in Kind}


async def test_users_of_a_dead_node_are_seen_last_while_it_was_not_overdue(pair: Pair) -> None:
    pair.other.last_seen.note()
    await add(pair.one, Kind.USERS, "a")
    await add(pair.one, Kind.CHANNELS, "b")
    await die(pair)

    until_ms = pair.other.overdue_at(NODE.uid)

    await sweep(pair.other)

    assert await pair.other.last_seen.users(10) == {"a": until_ms}


async def test_names_that_no_node_wrote_do_not_hide_others(pair: Pair) -> None:
    await add(pair.one, Kind.USERS, "7")
    for name in (b"\xff", b"8\xff"):
        pair.one.write_name(Kind.USERS, NODE.uid, name)
    await die(pair)

    assert (await sweep(pair.other))[Kind.USERS] == ["7"]


async def test_claim_of_the_sweeper_is_where_the_lists_are(
    open_redis: OpenRedisBench, unique: str
) -> None:
    for number in range(8):  # the prefix decides about the shard
        bench = await open_redis(SHARDS, prefix=f"{unique}{number}")
        await bench.cluster.claim(CLAIM, NODE.uid, 60)

        for server in bench.servers:
            keys = set(server.keys())
            has_claim = any(bench.prefix in key and ":owner:" in key for key in keys)
            has_lists = any(bench.prefix in key and key.endswith(":lists.expiry") for key in keys)
            assert has_claim == has_lists
