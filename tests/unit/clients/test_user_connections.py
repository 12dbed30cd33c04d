"""Connections of a user: one limit over all nodes."""

from __future__ import annotations

import pytest

from realtime.cluster.peers import HEARTBEAT_LIFETIME
from realtime.node.limits.user_connections import INTERVAL, PATIENCE, REMEMBERED, USERS_PER_CALL
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.memory_cluster import ClusterState
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, eventually
from tests.unit.suspended_engine import ClusterEngine

LIMIT = 3
CONNECTION_LIMIT, CONNECTION_LIMIT_OF_SECOND = 3013, 3504
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "client_anonymous": True,
    "user_connection_limit": LIMIT,
}


async def connect(node: Node, user: str = "17") -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, **({"token": connection_token(user)} if user else {}))
    await eventually(lambda: bool(connection.messages or connection.closes))
    return connection


async def several(node: Node, number: int, user: str = "17") -> list[Connection]:
    return [await connect(node, user) for _ in range(number)]


async def passes(clock: Clock, nodes: list[Node], seconds: float) -> None:
    """Let time pass, look by look."""
    for _ in range(round(seconds / INTERVAL)):
        await clock.advance(INTERVAL)
        for node in nodes:
            await node.idle()


def closes(connections: list[Connection]) -> list[list[int]]:
    return [list(connection.closes) for connection in connections]


async def test_node_refuses_at_once_by_its_own_count(nodes: list[Node]) -> None:
    mine = await several(nodes[0], LIMIT + 1)
    anonymous = await several(nodes[0], LIMIT + 1, user="")
    assert closes(mine) == [[]] * LIMIT + [[CONNECTION_LIMIT]]
    assert closes(anonymous) == [[]] * (LIMIT + 1)


async def test_newest_connections_beyond_the_limit_of_all_nodes_are_closed(
    nodes: list[Node], clock: Clock
) -> None:
    here = await several(nodes[0], 2)
    strangers = await several(nodes[1], 2, user="18")
    await passes(clock, nodes, 2 * INTERVAL)
    there = await several(nodes[1], LIMIT)
    await passes(clock, nodes, PATIENCE)
    waiting = closes(there)
    await passes(clock, nodes, 2 * INTERVAL)
    assert waiting == [[]] * LIMIT
    assert closes(there) == [[], [CONNECTION_LIMIT], [CONNECTION_LIMIT]]
    assert closes([*here, *strangers]) == [[]] * 4


async def test_second_generation_has_a_code_of_its_own(nodes: list[Node], clock: Clock) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    other = SecondConnection(nodes[1])
    await other.call("connect", token=connection_token("17"))
    await passes(clock, nodes, PATIENCE + 2 * INTERVAL)
    assert other.closes == [CONNECTION_LIMIT_OF_SECOND]


async def test_who_was_beyond_the_limit_has_no_patience_again(
    nodes: list[Node], clock: Clock
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    first = await several(nodes[1], 1)
    await passes(clock, nodes, PATIENCE + 2 * INTERVAL)
    again = await several(nodes[1], 2)
    await passes(clock, nodes, INTERVAL)
    after_one_look = closes(again)
    await passes(clock, nodes, INTERVAL)
    assert closes(first) == [[CONNECTION_LIMIT]]
    assert after_one_look == [[]] * 2
    assert closes(again) == [[CONNECTION_LIMIT]] * 2


async def test_user_who_was_beyond_the_limit_long_ago_is_a_user_as_any(
    nodes: list[Node], engines: list[ClusterEngine], clock: Clock
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    await several(nodes[1], 1)
    await passes(clock, nodes, PATIENCE + REMEMBERED + 2 * INTERVAL)
    # the node of the others dies
    engines[0].hold("announce", "place_connections")
    again = await several(nodes[1], LIMIT)
    await passes(clock, nodes[1:], 2 * PATIENCE)
    engines[0].go_on("announce", "place_connections")
    assert closes(again) == [[]] * LIMIT


async def test_place_that_becomes_free_is_taken(nodes: list[Node], clock: Clock) -> None:
    here = await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    [there] = await several(nodes[1], 1)
    await passes(clock, nodes, PATIENCE - INTERVAL)
    here[0].client.close(None)
    await passes(clock, nodes, 2 * PATIENCE)
    assert closes([there, *here[1:]]) == [[]] * LIMIT


async def test_page_that_is_loaded_anew_at_another_node_keeps_its_place(
    nodes: list[Node], clock: Clock
) -> None:
    here = await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    await several(nodes[1], 1)
    # the user has been beyond the limit, and its patience is over
    await passes(clock, nodes, PATIENCE + 2 * INTERVAL)
    here[0].client.close(None)
    [again] = await several(nodes[1], 1)
    await passes(clock, nodes, 2 * PATIENCE)
    assert closes([again, *here[1:]]) == [[]] * LIMIT


async def test_places_of_a_node_that_died_are_free_before_patience_ends(
    nodes: list[Node], engines: list[ClusterEngine], clock: Clock
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    engines[0].hold("announce", "place_connections")
    there = await several(nodes[1], LIMIT)
    await passes(clock, nodes[1:], 2 * (HEARTBEAT_LIFETIME + PATIENCE))
    assert closes(there) == [[]] * LIMIT
    engines[0].go_on("announce", "place_connections")


async def test_node_that_was_frozen_asks_for_places_anew(
    nodes: list[Node], engines: list[ClusterEngine], state: ClusterState, clock: Clock
) -> None:
    here = await several(nodes[0], LIMIT)
    await several(nodes[0], 1, user="18")
    await passes(clock, nodes, 2 * INTERVAL)
    engines[0].hold("announce", "place_connections")
    await passes(clock, nodes[1:], HEARTBEAT_LIFETIME)
    there = await several(nodes[1], LIMIT - 1)
    await passes(clock, nodes[1:], 2 * INTERVAL)
    engines[0].go_on("announce", "place_connections")
    await passes(clock, nodes, 2 * PATIENCE)
    assert closes([*here, *there]) == [[], [CONNECTION_LIMIT], [CONNECTION_LIMIT], [], []]
    assert state.places == {nodes[0].uid: {"17": 1, "18": 1}, nodes[1].uid: {"17": LIMIT - 1}}


async def test_places_end_with_a_node_that_stops(
    nodes: list[Node], state: ClusterState, clock: Clock
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    before = dict(state.places)
    await stop(nodes[0], clock, SHUTDOWN_TIMEOUT)
    assert before[nodes[0].uid] == {"17": LIMIT}
    assert nodes[0].uid not in state.places


async def test_no_connect_waits_while_redis_hangs(
    nodes: list[Node], engines: list[ClusterEngine], clock: Clock
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    engines[1].hold("place_connections")
    there = await several(nodes[1], LIMIT + 1)
    for _ in range(30):
        await clock.advance(INTERVAL)
    waiting = engines[1].waiting.count("place_connections")
    engines[1].go_on("place_connections")
    await passes(clock, nodes, PATIENCE - INTERVAL)
    after = closes(there)
    await passes(clock, nodes, 3 * INTERVAL)

    assert waiting == 1
    assert after == [[]] * LIMIT + [[CONNECTION_LIMIT]]
    assert closes(there) == [[CONNECTION_LIMIT]] * (LIMIT + 1)


async def test_patience_begins_anew_after_redis_was_away(
    nodes: list[Node],
    engines: list[ClusterEngine],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await several(nodes[0], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    [there] = await several(nodes[1], 1)
    await passes(clock, nodes, PATIENCE - INTERVAL)
    engines[1].failing.add("place_connections")
    await passes(clock, nodes, 3 * PATIENCE)
    while_away = list(there.closes)
    engines[1].failing.clear()
    await passes(clock, nodes, PATIENCE)
    patient = list(there.closes)
    await passes(clock, nodes, 3 * INTERVAL)

    assert (while_away, patient, there.closes) == ([], [], [CONNECTION_LIMIT])
    lines = [line for line in caplog.messages if "Could not count the connections" in line]
    assert len(lines) == 1


@pytest.mark.parametrize("lost", ["all", "one", "resumed"])
async def test_places_that_redis_lost_are_told_again(
    nodes: list[Node], state: ClusterState, clock: Clock, lost: str
) -> None:
    await several(nodes[0], LIMIT)
    await several(nodes[0], 1, user="18")
    await passes(clock, nodes, 2 * INTERVAL)
    places = dict(state.places[nodes[0].uid])

    match lost:
        case "all":
            state.places.clear()
        case "one":
            # an old replica: a user who has gone is back
            state.places[nodes[0].uid] = {"17": LIMIT, "18": 1, "19": 1}
        case "resumed":
            # the number of users does not tell
            state.places[nodes[0].uid] = {"17": LIMIT, "19": 1}
            nodes[0].on_resumed(lambda _: True)
    await passes(clock, nodes, 4 * HEARTBEAT_LIFETIME)

    assert state.places[nodes[0].uid] == places == {"17": LIMIT, "18": 1}


async def test_many_users_take_several_calls(
    nodes: list[Node], engines: list[ClusterEngine], state: ClusterState, clock: Clock
) -> None:
    users = [str(number) for number in range(USERS_PER_CALL + 1)]
    for user in users:
        await connect(nodes[0], user)
    before = engines[0].calls["place_connections"]
    await passes(clock, nodes, INTERVAL)
    assert engines[0].calls["place_connections"] - before == 2
    assert state.places[nodes[0].uid] == dict.fromkeys(users, 1)


async def test_user_who_goes_leaves_nothing(
    nodes: list[Node], state: ClusterState, clock: Clock
) -> None:
    there = await several(nodes[1], LIMIT)
    await passes(clock, nodes, 2 * INTERVAL)
    here = await several(nodes[0], 2)
    await passes(clock, nodes, 3 * INTERVAL)
    for connection in (*here, *there):
        connection.client.close(None)
    await passes(clock, nodes, 3 * INTERVAL)
    calls = [node.user_limits for node in nodes]

    assert not any(state.places.values())
    for limits in calls:
        assert limits._connections is not None
        assert not limits._connections._places
        assert not limits._connections._beyond
