"""What nodes tell each other: commands as a stream that is followed, and signs of life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.channel_rules import CONTROL
from realtime.cluster import control
from realtime.cluster.control import Control, DisconnectUser, Unsubscribe
from realtime.cluster.member import CONTROL_OPTIONS
from realtime.cluster.peers import HEARTBEAT_INTERVAL, HEARTBEAT_LIFETIME
from realtime.config.reader import load
from realtime.engine.base import NodeInfo
from realtime.errors import DisconnectConnectionLimit
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.protocol.messages import Publication
from realtime.timers import Timers
from tests.unit.memory_cluster import Heartbeat
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, RecordingClient, data, eventually, turns
from tests.unit.suspended_engine import ClusterEngine, SuspendedEngine

FORCED, CONNECTION_LIMIT = 3012, 3013


@pytest.fixture
async def engine(clock: Clock) -> ClusterEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load({}), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


async def other_node_says(engine: ClusterEngine, command: Control) -> None:
    """Have another node publish a command."""
    uid = str(engine.calls["publish"])
    await engine.broker.publish(
        CONTROL, Publication(control.encode(command), uid=uid), CONTROL_OPTIONS
    )


def heartbeats(engine: ClusterEngine) -> dict[str, Heartbeat]:
    """The nodes that announced themselves, by ID."""
    return engine.cluster.state.heartbeats


def add(node: Node, client_id: str = "C", user: str = "17") -> RecordingClient:
    client = RecordingClient(client_id, user)
    node.hub.add(client)
    return client


# commands


async def test_unsubscribe_that_another_node_says_is_done_here(
    node: Node, engine: ClusterEngine
) -> None:
    mine, other = add(node, "C1"), add(node, "C2", "18")

    await other_node_says(engine, Unsubscribe("17", "a", origin="another"))
    await eventually(lambda: mine.unsubscribed == ["a"])

    assert other.unsubscribed == []


@pytest.mark.parametrize("code", [FORCED, CONNECTION_LIMIT])
async def test_disconnect_that_another_node_says_is_done_here_with_its_code(
    node: Node, engine: ClusterEngine, code: int
) -> None:
    mine, kept, other = add(node, "C1"), add(node, "C2"), add(node, "C3", "18")

    await other_node_says(engine, DisconnectUser("17", code, keep="C2", origin="another"))
    await eventually(lambda: mine.close_codes == [code])

    assert kept.closes == other.closes == []


async def test_command_is_done_once_by_the_node_that_says_it(node: Node) -> None:
    client = add(node)

    await node.unsubscribe_user("17", "a")
    await node.disconnect_user("17", DisconnectConnectionLimit())
    await turns(20)

    assert client.unsubscribed == ["a"]
    assert client.close_codes == [CONNECTION_LIMIT]


async def test_command_is_done_here_also_where_the_others_cannot_be_told(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node)
    engine.failing.add("publish")

    with pytest.raises(ConnectionError):
        await node.disconnect_user("17")

    assert client.close_codes == [FORCED]


async def test_command_that_keeps_a_connection_is_done_once_by_the_node_that_says_it(
    node: Node,
) -> None:
    older, newer = add(node, "C1"), add(node, "C2")

    await node.disconnect_user("17", keep="C2")
    await turns(20)

    assert (older.close_codes, newer.closes) == ([FORCED], [])


async def test_command_that_keeps_a_connection_waits_for_its_place_among_the_others(
    node: Node, engine: ClusterEngine
) -> None:
    older = add(node, "C1")
    engine.hold("publish")
    saying = asyncio.create_task(node.disconnect_user("17", keep="C2"))
    await engine.reached("publish")
    await turns(20)
    assert older.closes == []

    engine.go_on("publish")
    await saying
    await eventually(lambda: older.close_codes == [FORCED])


@pytest.mark.parametrize(
    ("order", "closed"),
    [(["other", "own"], False), (["own", "other"], True)],
    ids=["own command last", "other command last"],
)
async def test_of_two_connections_that_exclude_each_other_the_one_of_the_last_command_stays(
    node: Node, engine: ClusterEngine, order: list[str], closed: bool
) -> None:
    client = add(node, "here")
    node.spare(client)

    for whose in order:
        if whose == "own":
            await node.disconnect_user("17", DisconnectConnectionLimit(), keep="here")
        else:
            command = DisconnectUser("17", CONNECTION_LIMIT, keep="there", origin="another")
            await other_node_says(engine, command)
        await turns(20)

    assert client.close_codes == ([CONNECTION_LIMIT] if closed else [])


async def test_disconnect_that_keeps_nobody_closes_a_new_connection_too(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node)
    node.spare(client)

    await other_node_says(engine, DisconnectUser("17", FORCED, origin="another"))
    await eventually(lambda: client.close_codes == [FORCED])


async def test_commands_that_were_missed_are_done_after_an_interruption(
    node: Node, engine: ClusterEngine
) -> None:
    client = add(node)
    node.on_interrupted(lambda channel: True)
    await engine.broker.unsubscribe(CONTROL)
    await other_node_says(engine, Unsubscribe("17", "a", origin="another"))
    await other_node_says(engine, Unsubscribe("17", "b", origin="another"))
    await engine.broker.subscribe(CONTROL)
    await turns(20)
    assert client.unsubscribed == []

    node.on_resumed(lambda channel: True)
    await eventually(lambda: client.unsubscribed == ["a", "b"])


async def test_commands_of_before_the_start_are_not_done(engine: ClusterEngine) -> None:
    await other_node_says(engine, Unsubscribe("17", "a", origin="another"))
    node = Node(load({}), engine)
    client = add(node)

    await node.start()
    await other_node_says(engine, Unsubscribe("17", "b", origin="another"))
    await eventually(lambda: client.unsubscribed == ["b"])

    await node.stop()


@pytest.mark.parametrize("words", ['{"do":"dance"}', "1", "null", '{"do":"disconnect"}'])
async def test_command_that_is_not_understood_is_logged_and_the_next_one_is_done(
    node: Node, engine: ClusterEngine, caplog: pytest.LogCaptureFixture, words: str
) -> None:
    client = add(node)

    await engine.broker.publish(CONTROL, Publication(data(words), uid="u"), CONTROL_OPTIONS)
    await other_node_says(engine, Unsubscribe("17", "a", origin="another"))
    await eventually(lambda: client.unsubscribed == ["a"])

    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_loss_of_the_commands_is_logged_and_the_next_one_is_done(
    node: Node, engine: ClusterEngine, caplog: pytest.LogCaptureFixture
) -> None:
    client = add(node)
    await other_node_says(engine, Unsubscribe("17", "a", origin="another"))

    node.on_interrupted(lambda channel: True)
    engine.lose_everything()
    node.on_resumed(lambda channel: True)
    await eventually(lambda: any(record.levelname == "ERROR" for record in caplog.records))
    await other_node_says(engine, Unsubscribe("17", "b", origin="another"))
    await eventually(lambda: client.unsubscribed == ["a", "b"])


async def test_node_of_an_engine_that_is_not_shared_tells_nobody(clock: Clock) -> None:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    node = Node(load({}), engine)
    await node.start()
    client = add(node)

    await node.disconnect_user("17")
    await clock.advance(2 * HEARTBEAT_INTERVAL)
    await node.stop()

    assert client.close_codes == [FORCED]
    assert sum(engine.calls[method] for method in ("publish", "announce", "withdraw")) == 0


# signs of life


async def test_node_is_announced_when_it_is_started_and_withdrawn_when_it_stops(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    heartbeat = heartbeats(engine)[node.uid]
    assert (heartbeat.node.uid, heartbeat.lifetime) == (node.uid, HEARTBEAT_LIFETIME)

    await stop(node, clock, SHUTDOWN_TIMEOUT)

    assert heartbeats(engine) == {}


async def test_signs_of_life_say_how_it_is_now(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    assert heartbeats(engine)[node.uid].node.num_clients == 0
    add(node)

    await clock.advance(HEARTBEAT_INTERVAL)
    await eventually(lambda: heartbeats(engine)[node.uid].node.num_clients == 1)

    assert heartbeats(engine)[node.uid].node.uptime == HEARTBEAT_INTERVAL


async def test_signs_of_life_come_in_time_and_none_after_the_end(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    announced = engine.calls["announce"]
    for _ in range(5):
        await clock.advance(HEARTBEAT_INTERVAL)
        await turns(20)
    assert engine.calls["announce"] - announced == 5

    await stop(node, clock, SHUTDOWN_TIMEOUT)
    announced = engine.calls["announce"]
    await clock.advance(10 * HEARTBEAT_INTERVAL)
    await turns(20)

    assert engine.calls["announce"] == announced


async def test_sign_of_life_that_cannot_be_given_is_logged_once_and_tried_again(
    node: Node, engine: ClusterEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    engine.failing.add("announce")
    for _ in range(3):
        await clock.advance(HEARTBEAT_INTERVAL)
        await turns(20)
    assert [record.levelname for record in caplog.records] == ["WARNING"]

    engine.failing.clear()
    heartbeats(engine).clear()
    await clock.advance(HEARTBEAT_INTERVAL)
    await eventually(lambda: node.uid in heartbeats(engine))


async def test_sign_of_life_follows_an_interruption_at_once(
    node: Node, engine: ClusterEngine
) -> None:
    heartbeats(engine).clear()

    node.on_resumed(lambda channel: True)

    await eventually(lambda: node.uid in heartbeats(engine))


async def test_nodes_are_this_one_as_it_is_now_and_then_the_others(
    node: Node, engine: ClusterEngine
) -> None:
    other = NodeInfo("u", "another", "1.0", 5, 4, 3, 2)
    await engine.cluster.announce(other, HEARTBEAT_LIFETIME)
    add(node)

    assert await node.nodes() == [node.describe(), other]
    assert node.describe().num_clients == 1


@pytest.mark.parametrize("step", ["subscribe", "position", "announce"])
async def test_node_that_could_not_start_leaves_no_task(engine: ClusterEngine, step: str) -> None:
    engine.failing.add(step)
    node = Node(load({}), engine)

    with pytest.raises(ConnectionError):
        await node.start()

    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
