"""One connection for each user: a client that connects closes the others, at every node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.channel_rules import CONTROL
from realtime.cluster import control
from realtime.cluster.control import CONTROL_OPTIONS, DisconnectUser
from realtime.config.reader import load
from realtime.engine.base import Outgoing
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.protocol.messages import Publication
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, RecordingClient, eventually, turns
from tests.unit.suspended_engine import ClusterEngine

FORCED, CONNECTION_LIMIT = 3012, 3013
SINGLE = {
    "user_subscribe_to_personal": True,
    "user_personal_single_connection": True,
    "presence": True,
}


@pytest.fixture
async def node(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load(SINGLE), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


def add(node: Node, client_id: str, user: str = "17") -> RecordingClient:
    client = RecordingClient(client_id, user)
    node.hub.add(client)
    return client


async def connect(node: Node, client: RecordingClient) -> None:
    """Do what the connect command does."""
    node.single_connection.begin(client)
    await node.single_connection.finish(client)


async def other_node_sends(engine: ClusterEngine, message: DisconnectUser) -> None:
    """Let another node send a control message."""
    uid = str(engine.calls["publish"])
    publication = Publication(control.encode(message), uid=uid)
    await engine.broker.publish(Outgoing(CONTROL, publication, CONTROL_OPTIONS))


async def test_new_connection_closes_the_others_of_its_user(node: Node) -> None:
    older, newer, other = add(node, "C1"), add(node, "C2"), add(node, "C3", "18")
    await connect(node, newer)
    await turns(20)
    assert older.close_codes == [CONNECTION_LIMIT]
    assert newer.closes == other.closes == []


async def test_new_connection_closes_the_others_in_a_node_without_a_cluster(clock: Clock) -> None:
    node = Node(load(SINGLE))
    await node.start()
    older, newer = add(node, "C1"), add(node, "C2")
    await connect(node, newer)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert (older.close_codes, newer.closes) == ([CONNECTION_LIMIT], [])


@pytest.mark.parametrize("options", [{}, {"user_subscribe_to_personal": True}], ids=str)
async def test_nothing_is_closed_where_the_option_is_off(
    clock: Clock, options: dict[str, object]
) -> None:
    node = Node(load(options))
    await node.start()
    older, newer = add(node, "C1"), add(node, "C2")
    await connect(node, newer)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert older.closes == []


async def test_anonymous_connections_do_not_close_each_other(node: Node) -> None:
    older, newer = add(node, "C1", ""), add(node, "C2", "")
    await connect(node, newer)
    await turns(20)
    assert older.closes == []


async def test_client_that_is_closing_closes_no_other(node: Node) -> None:
    older, newer = add(node, "C1"), add(node, "C2")
    node.single_connection.begin(newer)
    newer.close(None)
    await node.single_connection.finish(newer)
    await turns(20)
    assert older.closes == []


async def test_others_are_closed_when_the_message_has_its_place_in_the_stream(
    node: Node, engine: ClusterEngine
) -> None:
    older, newer = add(node, "C1"), add(node, "C2")
    engine.hold("publish")
    connecting = asyncio.create_task(connect(node, newer))
    await engine.reached("publish")
    await turns(20)
    assert older.closes == []
    engine.go_on("publish")
    await connecting
    await eventually(lambda: older.close_codes == [CONNECTION_LIMIT])


@pytest.mark.parametrize(
    ("order", "closed"),
    [(["other", "own"], False), (["own", "other"], True)],
    ids=["own message last", "other message last"],
)
async def test_of_two_that_connect_at_the_same_time_the_one_of_the_last_message_stays(
    node: Node, engine: ClusterEngine, order: list[str], closed: bool
) -> None:
    client = add(node, "here")
    node.single_connection.begin(client)
    for whose in order:
        if whose == "own":
            await node.single_connection.finish(client)
        else:
            message = DisconnectUser("17", CONNECTION_LIMIT, keep="there", origin="another")
            await other_node_sends(engine, message)
        await turns(20)
    assert client.close_codes == ([CONNECTION_LIMIT] if closed else [])


async def test_disconnect_by_the_server_api_closes_a_protected_client_too(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node, "C1")
    node.single_connection.begin(client)
    await other_node_sends(engine, DisconnectUser("17", FORCED, origin="another"))
    await eventually(lambda: client.close_codes == [FORCED])
