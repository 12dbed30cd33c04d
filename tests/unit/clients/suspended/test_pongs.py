"""Pongs that wait behind a command of the same client."""

from __future__ import annotations

from realtime.node.node import Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import Clock, turns
from tests.unit.suspended_engine import SuspendedEngine

NO_PONG = 3012


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


async def pass_time(clock: Clock, seconds: float) -> None:
    """Let time pass in steps, as many as the wheel of pings has."""
    step = 0.25
    for _ in range(int(seconds / step)):
        await clock.advance(step)
    await turns(20)
