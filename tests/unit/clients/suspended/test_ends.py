"""Clients that leave while the engine does not answer."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from realtime.cluster.control import ServerSubscription
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.server_api import operations
from tests.conftest import connection_token
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.node.node_parts import EVERYTHING, Connection, publish
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import SuspendedEngine

PRESENCE_TICK = 25
FORCED = 3012

Open = Callable[..., Any]


# closing


async def test_client_is_closed_before_an_engine_that_hangs_has_answered(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect()
    await connection.subscribe()
    engine.hold("presence.remove")
    await node.disconnect_user("17")
    await engine.reached("presence.remove")
    await eventually(lambda: connection.closes == [FORCED])
    assert await engine.presence.get("a") != {}
    engine.go_on("presence.remove")
    await node.idle()
    assert await engine.presence.get("a") == {}
    assert (node.hub.feeds, node.hub.clients) == ({}, {})


async def test_closing_client_does_not_count_as_a_connection_of_its_user(
    engine: SuspendedEngine,
) -> None:
    node = Node(load(EVERYTHING | {"client_user_connection_limit": 1}), engine)
    await node.start()
    first, second = Connection(node), Connection(node)
    token = connection_token("17")
    await first.say(1, 0, token=token)
    await first.subscribe()
    engine.hold("presence.remove")
    first.client.close(None)
    await engine.reached("presence.remove")

    await second.say(1, 0, token=token)

    assert second.reply(1) is not None
    ((answer,), _) = await operations.connections(node, "17")
    assert [report.client for report in answer.connections] == [second.client.id]
    assert answer.total == 1
    engine.go_on("presence.remove")
    await node.stop()


async def test_closed_client_keeps_nothing_while_the_engine_hangs(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect()
    await connection.subscribe()
    engine.hold("presence.remove")
    connection.client.close(None)
    await engine.reached("presence.remove")
    connection.ready = False

    await publish(node, node.config.channel, 1)
    connection.ready = True
    connection.client.outbox.ready()
    await turns()

    assert connection.pushes == []
    engine.go_on("presence.remove")


async def test_closing_client_leaves_its_channels_at_the_same_time(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect(channels=["a", "b", "c"])
    engine.hold("presence.remove")
    connection.client.close(None)
    await eventually(lambda: engine.waiting == ["presence.remove"] * 3)
    engine.go_on("presence.remove")
    await node.idle()
    assert node.hub.feeds == {}


# the engine fails when a client that has not become a subscriber leaves


async def test_command_that_is_cancelled_is_cancelled_where_its_work_cannot_be_undone(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    connection = await connect()
    engine.hold("presence.add")
    command = connection.subscribe()
    await engine.reached("presence.add")
    engine.failing.add("presence.remove")
    command.cancel()
    await asyncio.wait([command])
    assert command.cancelled()
    assert node.hub.feeds == {}


# presence is refreshed while a client leaves


async def test_presence_refresh_after_a_leave_leaves_no_presence(
    node: Node, engine: SuspendedEngine, connect: Open, clock: Clock
) -> None:
    connection = await connect()
    await connection.subscribe()
    engine.hold("presence.add")
    await clock.advance(PRESENCE_TICK)
    await engine.reached("presence.add")
    await connection.say(3, 2, channel="a")
    engine.go_on("presence.add")
    await node.idle()
    assert connection.reply(3) is not None
    assert await engine.presence.get("a") == {}


@pytest.mark.parametrize("step", ["presence.remove", "leave"])
async def test_presence_refresh_during_a_leave_leaves_no_presence(
    node: Node, engine: SuspendedEngine, connect: Open, clock: Clock, step: str
) -> None:
    connection = await connect()
    await connection.subscribe()
    engine.hold(step)
    command = connection.say(3, 2, channel="a")
    await engine.reached(step)

    await clock.advance(PRESENCE_TICK)
    await turns(20)
    engine.go_on(step)
    await command
    await node.idle()

    assert connection.reply(3) is not None
    assert await engine.presence.get("a") == {}


async def test_renewal_beside_a_leave_keeps_those_present_who_stay(
    node: Node, engine: SuspendedEngine, connect: Open, clock: Clock
) -> None:
    leaver, other = await connect(), await connect()
    await leaver.subscribe()
    await other.subscribe()
    engine.hold("presence.add")
    await clock.advance(PRESENCE_TICK)
    await engine.reached("presence.add")
    await leaver.say(3, 2, channel="a")
    engine.go_on("presence.add")
    await node.idle()
    assert list(await engine.presence.get("a")) == [other.client.id]


async def test_calls_that_come_after_the_end_do_nothing(node: Node, connect: Open) -> None:
    connection = await connect()
    await connection.subscribe()
    client = connection.client
    client.close(None)
    await node.idle()
    before = len(connection.messages)

    await client.subscribe(ServerSubscription("b"))
    await client.unsubscribe("a")
    await client.refresh()
    client.refresh_until(time.time() + 60, None)
    client.lose_position("a")
    client.ask_site("")
    await node.idle()

    assert (connection.messages[before:], connection.closes) == ([], [])
    assert node.hub.feeds == {}


async def test_client_that_is_cut_short_leaves_no_exception_behind(
    node: Node, engine: SuspendedEngine
) -> None:
    left: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="a")
    engine.hold("presence.remove")
    connection.client.close(None)
    await engine.reached("presence.remove")
    for task in node._background.tasks:
        task.cancel()
    del task  # its traceback holds what was left
    await node.idle()
    await turns()
    gc.collect()
    assert left == []
