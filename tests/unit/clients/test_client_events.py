"""Signals about a client come in pairs and in order, whatever the engine does meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.hooks import Events
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.node.node_parts import EVERYTHING, Connection, stop
from tests.unit.parts import Clock
from tests.unit.suspended_engine import METHODS, ClusterEngine, SuspendedEngine


class RecordingEvents(Events):
    """Keeps the signals about clients: kind, and the channel or the code."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, Any]] = []
        self.closed = False

    def emit(self, kind: str, **details: Any) -> None:
        assert not self.closed
        if "client" in details:
            assert details["user"] == "17"
            self.emitted.append((kind, details.get("channel", details.get("code"))))

    async def close(self) -> None:
        self.closed = True


async def serving(clock: Clock) -> tuple[RecordingEvents, Node, SuspendedEngine, Connection]:
    """A node with other nodes, and a client that has not connected."""
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    events = RecordingEvents()
    node = Node(load(EVERYTHING), engine, events=events)
    await node.start()
    return events, node, engine, Connection(node)


async def connect(connection: Connection, *channels: str) -> None:
    await connection.say(1, 0, token=connection_token("17", channels=channels))


async def test_signals_follow_a_client_from_connect_to_disconnect(clock: Clock) -> None:
    events, node, _, connection = await serving(clock)
    await connect(connection, "own")
    await connection.say(2, 1, channel="a")
    await connection.say(3, 2, channel="a")
    await connection.say(4, 2, channel="a")  # again, which does nothing
    connection.client.close(None)
    await stop(node, clock, SHUTDOWN_TIMEOUT)

    assert events.emitted == [
        ("connected", None),
        ("subscribed", "own"),
        ("subscribed", "a"),
        ("unsubscribed", "a"),
        ("unsubscribed", "own"),
        ("disconnected", 0),
    ]


async def test_client_that_did_not_connect_has_no_signals(clock: Clock) -> None:
    events, node, _, connection = await serving(clock)
    await connection.say(1, 0, token="no token")
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert connection.closes == [3002]
    assert events.emitted == []


@pytest.mark.parametrize("method", ["subscribe", "presence.add", "position"])
async def test_signals_are_balanced_when_a_channel_fails_during_connect(
    clock: Clock, method: str
) -> None:
    events, node, engine, connection = await serving(clock)
    engine.failing.add(method)
    await connect(connection, "own")
    connection.client.close(None)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    kinds = [kind for kind, _ in events.emitted]
    assert kinds == ["connected", "disconnected"]


@pytest.mark.parametrize("method", ["subscribe", "presence.add", "position"])
async def test_subscription_that_failed_has_no_signals(clock: Clock, method: str) -> None:
    events, node, engine, connection = await serving(clock)
    await connect(connection)
    engine.failing.add(method)
    await connection.say(2, 1, channel="a")
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert connection.reply(2) is None
    assert [kind for kind, _ in events.emitted] == ["connected", "disconnected"]


@pytest.mark.parametrize("method", ["unsubscribe", "presence.remove", "leave"])
async def test_subscription_whose_end_fails_has_both_signals(clock: Clock, method: str) -> None:
    events, node, engine, connection = await serving(clock)
    await connect(connection)
    await connection.say(2, 1, channel="a")
    engine.failing.add(method)
    await connection.say(3, 2, channel="a")
    connection.client.close(None)
    await stop(node, clock, SHUTDOWN_TIMEOUT)

    assert events.emitted == [
        ("connected", None),
        ("subscribed", "a"),
        ("unsubscribed", "a"),
        ("disconnected", 0),
    ]


async def test_signals_are_balanced_when_the_engine_hangs(clock: Clock) -> None:
    events, node, engine, connection = await serving(clock)
    await connect(connection)
    for number, channel in enumerate("abc", 2):
        await connection.say(number, 1, channel=channel)
    engine.hold(*METHODS)
    leaving = connection.say(5, 2, channel="b")
    await engine.reached("presence.remove")

    await stop(node, clock, SHUTDOWN_TIMEOUT)
    engine.go_on(*engine.held)
    await asyncio.wait([leaving], timeout=5)

    assert events.emitted[:4] == [
        ("connected", None),
        *(("subscribed", channel) for channel in "abc"),
    ]
    assert sorted(events.emitted[4:-1]) == [("unsubscribed", channel) for channel in "abc"]
    assert events.emitted[-1] == ("disconnected", 3001)
