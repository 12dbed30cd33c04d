"""The node compares positions from time to time: presence tick 25 s, check delay 40 s."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node.node import Node
from realtime.timers import Timers
from tests.unit.node.node_parts import PLAIN, RECOVERABLE, lose, publish, published, subscribe
from tests.unit.parts import Clock, RecordingClient, eventually, position_of, turns
from tests.unit.suspended_engine import SuspendedEngine

INSUFFICIENT_STATE = 3010


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return SuspendedEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: SuspendedEngine) -> AsyncIterator[Node]:
    made = Node(load({}), engine)
    await made.start()
    yield made
    await made.stop()


async def test_lost_publication_at_the_end_is_noticed_by_a_check_and_delivered(
    node: Node, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose(node, RECOVERABLE, 2)
    await clock.advance(25)
    await turns(20)
    assert published(client) == [1]  # 40 seconds have not passed
    await clock.advance(25)
    await eventually(lambda: published(client) == [1, 2])
    assert client.closes == []


async def test_lost_publication_at_the_end_is_delivered_when_the_stream_is_said_to_reach_it(
    node: Node, engine: SuspendedEngine
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose(node, RECOVERABLE, 2)
    for channel in ("a", "b", "c"):  # nobody is in b; the stream of c is not followed
        if channel == "c":
            await subscribe(node, RecordingClient("D"), PLAIN, channel)
        node.on_advance(channel, await position_of(node.broker, "a"))
    await eventually(lambda: published(client) == [1, 2])
    reads = engine.calls["history"]
    node.on_advance("a", await position_of(node.broker, "a"))
    await turns()
    assert engine.calls["history"] == reads, "there is nothing new"


async def test_loss_at_the_end_that_history_does_not_keep_closes_with_3010(
    node: Node, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose(node, RECOVERABLE, 2)
    await node.broker.remove_history("a")
    await clock.advance(25)
    await clock.advance(25)
    await eventually(lambda: bool(client.closes))
    assert client.close_codes == [INSUFFICIENT_STATE]
    assert published(client) == [1]


async def test_right_position_closes_no_client(node: Node, clock: Clock) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    for _ in range(20):
        await clock.advance(25)
        await turns(20)
    assert client.closes == []
    assert published(client) == [1]


async def test_publications_on_their_way_during_a_check_are_delivered_once(
    node: Node, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    for value in (1, 2, 3):
        late = await lose(node, RECOVERABLE, value)
        await clock.advance(25)
        await clock.advance(25)
        await eventually(lambda value=value: len(published(client)) == value)  # type: ignore[misc]
        # it was on its way, after all
        node.on_publication("a", late, await position_of(node.broker, "a"))
    assert client.closes == []
    assert published(client) == [1, 2, 3]


async def test_first_check_comes_no_sooner_than_the_delay_after_the_subscription(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    await subscribe(node, RecordingClient(), RECOVERABLE)
    asked = engine.calls["position"]
    await clock.advance(25)
    await turns(20)
    assert engine.calls["position"] == asked
    await clock.advance(25)
    await eventually(lambda: engine.calls["position"] == asked + 1)


async def test_live_publications_put_the_check_off(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 0)
    asked = engine.calls["position"]
    for value in range(6):
        await clock.advance(25)
        await turns(20)
        await publish(node, RECOVERABLE, value)
    assert engine.calls["position"] == asked
    await clock.advance(25)
    await clock.advance(25)
    await eventually(lambda: engine.calls["position"] == asked + 1)


async def test_check_puts_the_next_one_off(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 0)
    asked = engine.calls["position"]
    for _ in range(8):  # 200 seconds: every second tick is at least 40 after the last check
        await clock.advance(25)
        await turns(20)
    assert engine.calls["position"] - asked == 4


async def test_check_delay_of_0_checks_never(clock: Clock, engine: SuspendedEngine) -> None:
    node = Node(load({"client_channel_position_check_delay": 0}), engine)
    await node.start()
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await lose(node, RECOVERABLE, 1)
    asked = engine.calls["position"]

    for _ in range(20):
        await clock.advance(25)
        await turns(20)

    assert engine.calls["position"] == asked
    assert published(client) == []
    assert client.closes == []
    await node.stop()


async def test_check_that_fails_is_made_again(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    await publish(node, RECOVERABLE, 1)
    await lose(node, RECOVERABLE, 2)
    engine.failing.add("position")
    for _ in range(4):
        await clock.advance(25)
        await turns(20)
    assert published(client) == [1]

    engine.failing.clear()
    await clock.advance(25)
    await eventually(lambda: published(client) == [1, 2])
