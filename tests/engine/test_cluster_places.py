"""The contract of `engine.nodes.Cluster`, for every engine that has one: places of connections."""

from __future__ import annotations

import asyncio

import pytest

from realtime.engine.limits import Places
from realtime.errors import EngineUnavailable
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE, Bench, Pair
from tests.engine.redis_bench import RedisBench

LIMIT = 5


async def test_connections_have_places_up_to_the_limit(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    assert await place("N1", {"17": 3, "18": 7, "19": 0}, LIMIT) == Places(2, [3, 5, 0], [0, 0, 0])
    assert await place("N1", {"17": 0}, LIMIT) == Places(1, [0], [0])
    assert await place("N1", {}, LIMIT) == Places(1, [], [])


async def test_places_at_other_nodes_count(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    await clustered.cluster.announce(SECOND_NODE, NODE_LIFETIME)
    await place("N1", {"17": 3}, LIMIT)
    assert await place("N2", {"18": 4, "17": 4}, LIMIT) == Places(2, [4, 2], [0, 3])
    assert await place("N1", {"17": 4, "18": 4}, LIMIT) == Places(2, [3, 1], [2, 4])


async def test_node_keeps_its_places_where_the_limit_is_lower_now(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    await clustered.cluster.announce(SECOND_NODE, NODE_LIFETIME)
    await place("N1", {"17": 4}, LIMIT)
    assert await place("N1", {"17": 6}, 2) == Places(1, [4], [0])
    assert await place("N2", {"17": 1}, 2) == Places(0, [0], [4])


async def test_node_may_give_up_all_places(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    await place("N1", {"17": 1, "18": 1, "19": 1}, LIMIT)
    assert await place("N1", {"17": 2}, LIMIT, clears=True) == Places(1, [2], [0])


async def test_node_that_is_not_announced_or_withdraws_has_no_places(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    with pytest.raises(EngineUnavailable, match="overdue"):
        await place("N2", {"17": 3}, LIMIT)
    alone = await place("N1", {"17": 5}, LIMIT)
    await clustered.cluster.withdraw(NODE)
    with pytest.raises(EngineUnavailable, match="overdue"):
        await place("N1", {"17": 1}, LIMIT)
    await clustered.cluster.announce(SECOND_NODE, NODE_LIFETIME)

    assert alone == Places(1, [5], [0])
    assert await place("N2", {"17": 3}, LIMIT) == Places(1, [3], [0])


async def test_places_of_a_node_that_was_taken_for_dead_are_those_of_others(
    clustered: Bench,
) -> None:
    place = clustered.limits.place_connections
    await place("N1", {"17": LIMIT}, LIMIT)
    await clustered.elapse(NODE_LIFETIME + 1)
    await clustered.cluster.announce(SECOND_NODE, NODE_LIFETIME)
    there = await place("N2", {"17": LIMIT}, LIMIT)

    await clustered.cluster.announce(NODE, NODE_LIFETIME)
    here = await place("N1", {"17": LIMIT}, LIMIT)

    assert there == Places(1, [LIMIT], [0])
    assert here == Places(0, [0], [LIMIT])


async def test_any_text_is_a_user(clustered: Bench) -> None:
    place = clustered.limits.place_connections
    await clustered.cluster.announce(SECOND_NODE, NODE_LIFETIME)
    for number, user in enumerate(("", "ä漢🎉", "a\r\nb\x00", "u" * 10_000), 1):
        await place("N1", {user: 2}, LIMIT)
        found = await place("N2", {user: 9, user + "x": 9}, LIMIT)
        assert found == Places(2 * number, [3, 5], [2, 0])


async def test_many_users_and_any_numbers_of_them(clustered: Bench) -> None:
    users = {str(number): 10**9 for number in range(500)}
    answer = await clustered.limits.place_connections("N1", users, 10**9)
    assert answer == Places(500, [10**9] * 500, [0] * 500)


async def test_two_nodes_that_ask_for_the_last_place(pair: Pair) -> None:
    answers = await asyncio.gather(
        *(
            bench.limits.place_connections(node.uid, {"17": LIMIT}, LIMIT)
            for bench, node in ((pair.one, NODE), (pair.other, SECOND_NODE))
        )
    )

    assert sorted(answer.here for answer in answers) == [[0], [LIMIT]]


async def test_places_end_with_the_heartbeat_and_name_no_user(own: RedisBench) -> None:
    await own.limits.place_connections("N1", {"secret": 1}, LIMIT)
    with own.client() as client:
        left = client.pttl("p:connections:N1")
        names = client.hkeys("p:connections:N1")
        await own.cluster.withdraw(NODE)
        withdrawn = client.exists("p:connections:N1")

    assert 0 < left <= NODE_LIFETIME * 1000
    assert [len(name) for name in names] == [32]
    assert not withdrawn
