"""Observers in a node are hidden, also later and when something fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime.auth import issue
from realtime.config.reader import load
from realtime.node.hooks import Events
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.node.node_parts import EVERYTHING, Connection, stop
from tests.unit.parts import Clock, turns
from tests.unit.suspended_engine import SuspendedEngine

KEY = b"a key of the tests, long enough for HMAC SHA-256"
OPTIONS = EVERYTHING | {"user_personal_single_connection": True, "user_subscribe_to_personal": True}
PRESENCE = ("presence.add", "presence.remove", "join", "leave")


class RecordingEvents(Events):
    """Keeps the kinds of what is emitted."""

    def __init__(self) -> None:
        self.emitted: list[str] = []

    def emit(self, kind: str, **details: Any) -> None:
        self.emitted.append(kind)


class Bench:
    """A node with an engine that counts its calls."""

    def __init__(self) -> None:
        self.engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
        self.events = RecordingEvents()
        self.node = Node(load(OPTIONS), self.engine, events=self.events, observer_keys=[KEY])

    async def connect(self, *channels: str) -> Connection:
        """Connect an observer."""
        connection = Connection(self.node)
        await connection.say(1, 0, token=issue.observer_token(KEY, channels, ttl=10_000))
        return connection

    def calls(self) -> int:
        """Calls of the engine about presence, joins and leaves."""
        return sum(self.engine.calls[method] for method in PRESENCE)


@pytest.fixture
async def bench(clock: Clock) -> Bench:
    bench = Bench()
    await bench.node.start()
    return bench


async def test_observer_is_hidden_from_its_beginning_to_its_end(bench: Bench, clock: Clock) -> None:
    observer = await bench.connect("a", "b")
    await clock.advance(100)  # presence is renewed every 25 seconds
    await turns(20)
    assert set(bench.node.hub.feeds) == {"a", "b"}
    observer.client.close(None)
    await turns(20)
    assert bench.node.hub.feeds == {}
    assert bench.calls() == 0
    assert set(bench.events.emitted) <= {"channel_occupied", "channel_vacated"}
    await stop(bench.node, clock, SHUTDOWN_TIMEOUT)


async def test_presence_of_others_is_renewed_without_the_observer(
    bench: Bench, clock: Clock
) -> None:
    await bench.connect("a")
    client = Connection(bench.node)
    await client.say(1, 0, token=connection_token("17", channels=["a"]))
    await clock.advance(50)
    await turns(20)
    assert set(await bench.engine.presence.get("a")) == {client.client.id}
    await stop(bench.node, clock, SHUTDOWN_TIMEOUT)


async def test_observer_has_no_user_and_no_personal_channel(bench: Bench, clock: Clock) -> None:
    await bench.connect("a")
    assert (bench.node.hub.clients, bench.node.hub.users) == ({}, {})
    assert set(bench.node.hub.feeds) == {"a"}
    await stop(bench.node, clock, SHUTDOWN_TIMEOUT)


async def test_observer_is_closed_when_the_node_stops(bench: Bench, clock: Clock) -> None:
    observer = await bench.connect("a")
    await stop(bench.node, clock, SHUTDOWN_TIMEOUT)
    assert observer.closes == [3001]


async def test_node_without_keys_has_no_observers(clock: Clock) -> None:
    node = Node(load(OPTIONS))
    await node.start()
    connection = Connection(node)
    await connection.say(1, 0, token=issue.observer_token(KEY, ["a"], ttl=60))
    await turns(20)
    assert connection.closes == [3002]
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def test_observer_whose_channel_fails_while_it_connects_leaves_nothing(
    bench: Bench, clock: Clock
) -> None:
    bench.engine.failing.add("position")
    observer = await bench.connect("a")
    await turns(20)
    assert observer.closes == [3004]
    assert bench.node.hub.feeds == {}
    assert bench.calls() == 0
    assert set(bench.events.emitted) <= {"channel_occupied", "channel_vacated"}
    await stop(bench.node, clock, SHUTDOWN_TIMEOUT)
