"""A client that subscribes to a recoverable channel misses nothing and gets nothing twice.

Whatever arrives before the reply, and whatever position the node has reached: the publications of
the reply and the pushes after it are the stream, each publication once and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.node.subscriptions import CATCH_UP_TIMEOUT
from realtime.protocol.messages import ClientInfo
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.node.node_parts import Connection, publish, stop
from tests.unit.parts import Clock, eventually, position_of, turns
from tests.unit.suspended_engine import ClusterEngine, SuspendedEngine

SERVER_ERROR, INSUFFICIENT_STATE = 3004, 3010
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "v3_use_offset": True,
    "history_size": 10,
    "history_lifetime": 300,
    "history_recover": True,
}

Connect = Callable[[], Awaitable[Connection]]
Clients = tuple[Connection, Connection]


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: SuspendedEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
def connect(node: Node) -> Connect:
    """Connect a client."""

    async def connect() -> Connection:
        connection = Connection(node)
        await connection.say(1, 0, token=connection_token("17"))
        assert connection.reply(1) is not None
        return connection

    return connect


@pytest.fixture
async def clients(connect: Connect) -> Clients:
    """A subscriber, and a client that is about to subscribe."""
    first, second = await connect(), await connect()
    await first.subscribe()
    return first, second


async def publish_to_a(node: Node, *values: int) -> None:
    for value in values:
        await publish(node, node.config.channel, value)


async def lose_in_a(node: Node, *values: int) -> None:
    """Publish something that does not arrive at this node."""
    await node.broker.unsubscribe("a")
    await publish_to_a(node, *values)
    await node.broker.subscribe("a")


async def recover(connection: Connection, offset: int) -> asyncio.Task[None]:
    """Begin to subscribe from the position of a publication."""
    epoch = (await position_of(connection.client.node.broker, "a")).epoch
    return connection.say(2, 1, channel="a", recover=True, offset=offset, epoch=epoch)


def result(connection: Connection) -> dict[str, Any]:
    """Return the result of the subscribe command."""
    reply = connection.reply(2)
    assert reply is not None
    found: dict[str, Any] = reply["result"]
    return found


def recovered(connection: Connection) -> list[int]:
    """Return the data of the publications in the reply."""
    return [publication["data"] for publication in result(connection).get("publications", [])]


def pushed(connection: Connection) -> list[int]:
    """Return the data of the publications that were pushed."""
    return [push["data"]["data"] for push in connection.pushes]


# the first subscriber of a channel


@pytest.mark.parametrize("answered", [True, False], ids=["after the read", "before the read"])
async def test_publication_while_the_first_position_is_read_comes_before_the_reply_s_position(
    node: Node, engine: SuspendedEngine, connect: Connect, answered: bool
) -> None:
    connection = await connect()
    (engine.hold_answer if answered else engine.hold)("position")
    command = connection.subscribe()
    await engine.reached("position")
    await publish_to_a(node, 1)
    engine.go_on("position")
    await command
    await publish_to_a(node, 2)
    await turns()
    assert result(connection)["offset"] == 1
    assert pushed(connection) == [2]


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "arrives"])
@pytest.mark.parametrize("answered", [True, False], ids=["after the read", "before the read"])
async def test_publication_while_the_first_subscriber_recovers_comes_once(
    node: Node, engine: SuspendedEngine, connect: Connect, answered: bool, lost: bool
) -> None:
    await publish_to_a(node, 1, 2)
    connection = await connect()
    (engine.hold_answer if answered else engine.hold)("position")
    command = await begin_to_recover(engine, connection, 1)
    await (lose_in_a if lost else publish_to_a)(node, 3)
    engine.go_on("position")
    await command
    await publish_to_a(node, 4)
    await eventually(lambda: [*recovered(connection), *pushed(connection)] == [2, 3, 4])
    assert result(connection)["recovered"] is True
    assert connection.closes == []


async def begin_to_recover(
    engine: SuspendedEngine, connection: Connection, offset: int
) -> asyncio.Task[None]:
    """Suspend the reading of the position, and begin to subscribe from an epoch read before."""
    epoch = (await engine.broker.history("a")).position.epoch
    command = connection.say(2, 1, channel="a", recover=True, offset=offset, epoch=epoch)
    await engine.reached("position")
    return command


# history and the node have reached different positions


async def test_node_that_is_behind_history_catches_up_first_and_everybody_gets_each_once(
    node: Node, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1)
    await lose_in_a(node, 2, 3)
    await (await recover(second, 1))
    await publish_to_a(node, 4)
    await turns()
    assert recovered(second) == [2, 3]
    assert (result(second)["offset"], result(second)["recovered"]) == (3, True)
    assert (pushed(first), pushed(second)) == ([1, 2, 3, 4], [4])
    assert first.closes == second.closes == []


async def test_publications_that_come_while_history_is_on_its_way_follow_it_in_the_reply(
    node: Node, engine: SuspendedEngine, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1, 2)
    engine.hold_answer("history")
    command = await recover(second, 1)
    await engine.reached("history")

    await publish_to_a(node, 3, 4)
    engine.go_on("history")
    await command
    await publish_to_a(node, 5)
    await turns()

    assert recovered(second) == [2, 3, 4]
    assert (result(second)["offset"], result(second)["recovered"]) == (4, True)
    assert (pushed(first), pushed(second)) == ([1, 2, 3, 4, 5], [5])


async def test_subscriber_that_does_not_recover_during_a_gap_gets_what_fills_it(
    node: Node, engine: SuspendedEngine, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1)
    await lose_in_a(node, 2)
    engine.hold("history")
    await publish_to_a(node, 3)
    await engine.reached("history")
    await second.subscribe()
    assert result(second)["offset"] == 1
    engine.go_on("history")
    await eventually(lambda: pushed(second) == [2, 3])
    assert pushed(first) == [1, 2, 3]


async def test_subscriber_that_recovers_during_a_gap_gets_each_once(
    node: Node, engine: SuspendedEngine, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1)
    await lose_in_a(node, 2)
    engine.hold_answer("history")
    await publish_to_a(node, 3)
    await engine.reached("history")

    command = await recover(second, 0)
    await turns(20)
    await lose_in_a(node, 4)
    engine.go_on("history")
    await command
    await publish_to_a(node, 5)
    await eventually(lambda: [*recovered(second), *pushed(second)] == [1, 2, 3, 4, 5])
    await eventually(lambda: pushed(first) == [1, 2, 3, 4, 5])

    assert result(second)["recovered"] is True
    assert first.closes == second.closes == []


async def test_several_that_recover_from_different_offsets_get_what_each_of_them_missed(
    node: Node, connect: Connect
) -> None:
    connections = [await connect() for _ in range(5)]
    await publish_to_a(node, *range(1, 6))
    commands = [await recover(connections[offset], offset) for offset in range(5)]
    await asyncio.gather(*commands)
    await publish_to_a(node, 6)
    await turns()
    for offset, connection in enumerate(connections):
        assert recovered(connection) == list(range(offset + 1, 6))
        assert result(connection)["recovered"] is True
        assert pushed(connection) == [6]


# interruptions and failures


async def test_subscriber_that_recovers_during_an_interruption_waits_for_its_end(
    node: Node, engine: SuspendedEngine, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1)
    node.on_interrupted(lambda channel: True)
    await lose_in_a(node, 2)
    command = await recover(second, 1)
    await turns(20)
    assert second.reply(2) is None
    node.on_resumed(lambda channel: True)
    await command
    assert (recovered(second), result(second)["recovered"]) == ([2], True)
    assert pushed(first) == [1, 2]


async def test_subscriber_does_not_wait_for_ever_for_a_node_that_cannot_catch_up(
    node: Node, engine: SuspendedEngine, clients: Clients, clock: Clock
) -> None:
    first, second = clients
    node.on_interrupted(lambda channel: True)
    await lose_in_a(node, 1)
    command = await recover(second, 0)
    await turns(20)
    await clock.advance(CATCH_UP_TIMEOUT - 1)
    assert not command.done()

    await clock.advance(1.1)
    await command
    await eventually(lambda: bool(second.closes))

    assert second.closes == [SERVER_ERROR]
    assert first.closes == []
    assert list(node.hub.feeds["a"].subscribers()) == [first.client]


async def test_stream_that_is_lost_while_a_client_recovers_closes_it_with_3010(
    node: Node, engine: SuspendedEngine, clients: Clients
) -> None:
    first, second = clients
    await publish_to_a(node, 1)
    engine.hold_answer("history")
    command = await recover(second, 0)
    await engine.reached("history")
    engine.lose_everything()
    await publish_to_a(node, 2)

    engine.go_on("history")
    await command
    await eventually(lambda: bool(first.closes and second.closes))

    assert (first.closes, second.closes) == ([INSUFFICIENT_STATE], [INSUFFICIENT_STATE])
    assert pushed(second) == []
    await eventually(lambda: "a" not in node.hub.feeds)


async def test_client_whose_channel_cannot_be_opened_does_not_wait_for_presence_that_it_has_not(
    clock: Clock,
) -> None:
    """It would wait for Redis a second time before it is told."""
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load({**OPTIONS, "presence": True}), engine)
    await node.start()
    client = Connection(node)
    await client.say(1, 0, token=connection_token("17"))
    engine.failing.add("subscribe")
    await client.say(2, 1, channel="a")
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert client.closes == [SERVER_ERROR]
    assert engine.calls["presence.remove"] == 0


# the join


async def test_join_that_fails_is_logged_without_a_traceback(
    node: Node, engine: SuspendedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.failing.add("join")
    await node.subscriptions.join("a", ClientInfo("17", "C"), ChannelOptions(join_leave=True))
    assert [bool(record.exc_info) for record in caplog.records] == [False]
