"""Pongs that wait behind a command of the same client."""

from __future__ import annotations

from realtime.clients.session import LOST_MOST
from realtime.node.node import Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import Clock, turns
from tests.unit.suspended_engine import SuspendedEngine

NO_PONG = 3012
BAD_REQUEST = 3501


async def test_client_is_not_closed_while_a_slow_command_keeps_its_pong_waiting(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="a")
    engine.hold("presence.get")
    asking = connection.begin("presence", channel="a")
    await engine.reached("presence.get")

    await pass_time(clock, node.config.ping_interval + node.config.pong_timeout)
    assert connection.pings == 1
    assert connection.closes == []

    engine.go_on("presence.get")
    assert list((await asking)["presence"]) == [connection.client.id]
    await connection.raw("{}")
    await pass_time(clock, node.config.pong_timeout)
    assert connection.closes == []


async def test_client_that_does_not_answer_after_a_slow_command_is_closed(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="a")
    engine.hold("presence.get")
    asking = connection.begin("presence", channel="a")
    await engine.reached("presence.get")
    await pass_time(clock, node.config.ping_interval + node.config.pong_timeout)
    engine.go_on("presence.get")
    await asking
    await pass_time(clock, node.config.ping_interval + node.config.pong_timeout)
    assert connection.closes == [NO_PONG]


async def relayed(node: Node) -> SecondConnection:
    """A client whose frames other nodes may relay."""
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    connection.dispatcher.client.session.lost_pongs = 0
    return connection


async def test_client_whose_pongs_may_have_been_held_back_is_pinged_again_but_not_for_ever(
    node: Node, clock: Clock
) -> None:
    connection, direct = await relayed(node), SecondConnection(node)
    await direct.call("connect", token=connection_token("17"))
    node.on_interrupted(lambda channel: True)  # and never again ready
    interval = node.config.ping_interval
    await pass_time(clock, 2 * interval + node.config.pong_timeout)
    assert (connection.closes, connection.pings >= 2) == ([], True)
    assert direct.closes == [NO_PONG]
    await pass_time(clock, (LOST_MOST + 1) * interval)
    assert connection.closes == [NO_PONG]


async def test_pongs_that_were_held_back_may_come_late_and_no_others(
    node: Node, clock: Clock
) -> None:
    connection = await relayed(node)
    node.on_interrupted(lambda channel: True)
    await pass_time(clock, node.config.ping_interval + node.config.pong_timeout)
    while connection.pings < 2:
        await pass_time(clock, 1)

    for _ in range(2):
        await connection.raw("{}")
    await turns(20)
    assert connection.closes == []
    await connection.raw("{}")
    await turns(20)

    assert connection.closes == [BAD_REQUEST]


async def pass_time(clock: Clock, seconds: float) -> None:
    """Let time pass in steps, as many as the wheel of pings has."""
    step = 0.25
    for _ in range(int(seconds / step)):
        await clock.advance(step)
    await turns(20)
