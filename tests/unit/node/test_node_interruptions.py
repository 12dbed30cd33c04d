"""The node when its engine is interrupted: what was missed is delivered when it is back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.base import History
from realtime.errors import EngineUnavailable, NoReply
from realtime.node.interruptions import CATCH_UP_AT_ONCE
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.unit.node.node_parts import (
    HISTORY,
    RECOVERABLE,
    lose,
    publish,
    published,
    stop,
    subscribe,
)
from tests.unit.parts import Clock, RecordingClient, eventually, turns
from tests.unit.suspended_engine import SuspendedEngine

INSUFFICIENT_STATE = 3010
PRESENT = ChannelOptions(presence=True)


def everything(channel: str) -> bool:
    return True


@pytest.fixture
async def node(engine: SuspendedEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load({}), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


async def test_what_was_missed_during_an_interruption_is_delivered_in_order(node: Node) -> None:
    clients = [RecordingClient("C1"), RecordingClient("C2")]
    for client in clients:
        await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    node.on_interrupted(everything)
    await lose(node, RECOVERABLE, 2)
    await publish(node, RECOVERABLE, 3)
    await lose(node, RECOVERABLE, 4)
    await turns(20)
    assert published(clients[0]) == [1]
    node.on_resumed(everything)
    await eventually(lambda: published(clients[0]) == [1, 2, 3, 4])
    await publish(node, RECOVERABLE, 5)

    assert [published(client) for client in clients] == [[1, 2, 3, 4, 5]] * 2
    assert [client.closes for client in clients] == [[], []]
    # one stream was read again, for both
    assert (node.counters.interruptions, node.subscriptions.gaps) == (1, 1)
    assert node.counters.lost_streams == 0


async def test_channel_without_recovery_is_served_as_ever(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), HISTORY)
    node.on_interrupted(everything)
    await publish(node, HISTORY, 1)
    assert published(client) == [1]


async def test_interruption_of_some_channels_does_not_concern_the_others(node: Node) -> None:
    concerned, other = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, concerned, RECOVERABLE, "a")
    await subscribe(node, other, RECOVERABLE, "b")

    node.on_interrupted(lambda channel: channel == "a")
    await publish(node, RECOVERABLE, 1, "a")
    await publish(node, RECOVERABLE, 2, "b")
    await turns(20)
    assert (published(concerned), published(other)) == ([], [2])
    node.on_resumed(lambda channel: channel == "b")
    await turns(20)
    assert published(concerned) == []
    node.on_resumed(lambda channel: channel == "a")
    await eventually(lambda: published(concerned) == [1])

    assert published(other) == [2]


async def test_interruption_before_the_end_of_another_waits_for_its_own_end(node: Node) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    node.on_interrupted(everything)
    node.on_resumed(everything)
    node.on_interrupted(everything)
    await lose(node, RECOVERABLE, 1)
    await turns(20)
    assert published(client) == []
    node.on_resumed(everything)
    await eventually(lambda: published(client) == [1])


async def test_streams_that_were_lost_meanwhile_close_with_3010(
    node: Node, engine: SuspendedEngine
) -> None:
    client, later = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, client, RECOVERABLE)
    await publish(node, RECOVERABLE, 1)

    node.on_interrupted(everything)
    engine.lose_everything()
    node.on_resumed(everything)
    await eventually(lambda: bool(client.closes))
    await subscribe(node, later, RECOVERABLE)
    await publish(node, RECOVERABLE, 2)

    assert client.close_codes == [INSUFFICIENT_STATE]
    assert node.counters.lost_streams == 1
    assert published(client) == [1]
    assert (published(later), later.closes) == ([2], [])


async def test_however_many_channels_catch_up(node: Node) -> None:
    clients = {f"a{number}": RecordingClient() for number in range(2 * CATCH_UP_AT_ONCE + 1)}
    for channel, client in clients.items():
        await subscribe(node, client, RECOVERABLE, channel)
    node.on_interrupted(everything)
    for channel in clients:
        await lose(node, RECOVERABLE, 1, channel)
    node.on_resumed(everything)
    await eventually(lambda: all(published(client) == [1] for client in clients.values()))


async def test_channels_catch_up_side_by_side_and_only_so_many(
    node: Node, engine: SuspendedEngine
) -> None:
    for number in range(CATCH_UP_AT_ONCE + 1):
        await subscribe(node, RecordingClient(), RECOVERABLE, f"a{number}")
    node.on_interrupted(everything)
    engine.hold("history")
    node.on_resumed(everything)
    await turns(20)
    assert len(engine.waiting) == CATCH_UP_AT_ONCE
    engine.go_on("history")


@pytest.mark.parametrize("turn", ["in its turn", "before its turn"])
async def test_channel_that_ends_while_it_catches_up_does_not_keep_the_others_from_it(
    node: Node, engine: SuspendedEngine, turn: str
) -> None:
    clients = {f"a{number}": RecordingClient() for number in range(2 * CATCH_UP_AT_ONCE)}
    for channel, client in clients.items():
        await subscribe(node, client, RECOVERABLE, channel)
    node.on_interrupted(everything)
    for channel in clients:
        await lose(node, RECOVERABLE, 1, channel)
    engine.hold("history")
    node.on_resumed(everything)
    await engine.reached("history")

    ending = "a1" if turn == "in its turn" else f"a{2 * CATCH_UP_AT_ONCE - 3}"
    gone = clients.pop(ending)
    await node.subscriptions.remove(ending, gone, RECOVERABLE, leave=None)
    await turns()
    engine.go_on("history")

    await eventually(lambda: all(published(client) == [1] for client in clients.values()))
    assert published(gone) == []


@pytest.mark.parametrize("step", ["subscribe", "position"])
async def test_channel_that_is_opened_during_an_interruption_delays_no_other(
    node: Node, engine: SuspendedEngine, step: str
) -> None:
    opened = RecordingClient("C1")
    engine.hold(step)
    opening = asyncio.create_task(subscribe(node, opened, RECOVERABLE, "a"))
    await engine.reached(step)
    opens = engine.held.pop(step)  # only that one waits
    clients = {f"b{number}": RecordingClient() for number in range(2 * CATCH_UP_AT_ONCE)}
    for channel, client in clients.items():
        await subscribe(node, client, RECOVERABLE, channel)

    node.on_interrupted(everything)
    for channel in clients:
        await publish(node, RECOVERABLE, 1, channel)
    node.on_resumed(everything)
    await turns(20)
    opens.set()
    await opening
    await publish(node, RECOVERABLE, 2, "a")

    await eventually(lambda: published(opened) == [2])
    await eventually(lambda: all(published(client) == [1] for client in clients.values()))
    assert opened.closes == []


async def test_failure_of_the_engine_after_an_interruption_is_overcome(
    node: Node, engine: SuspendedEngine, clock: Clock
) -> None:
    client = await subscribe(node, RecordingClient(), RECOVERABLE)
    node.on_interrupted(everything)
    await lose(node, RECOVERABLE, 1)
    engine.failing.update({"history", "position", "presence.add"})
    node.on_resumed(everything)
    await clock.advance(10)
    assert published(client) == []

    engine.failing.clear()
    for _ in range(10):
        await clock.advance(1)
    await eventually(lambda: published(client) == [1])

    assert client.closes == []


async def test_subscribers_are_present_again_where_the_engine_forgot(
    node: Node, engine: SuspendedEngine
) -> None:
    staying, leaving = RecordingClient("C1"), RecordingClient("C2")
    await subscribe(node, staying, PRESENT)
    await subscribe(node, leaving, PRESENT)
    await node.subscriptions.remove("a", leaving, PRESENT, leave=None)
    node.on_interrupted(everything)
    engine.lose_everything()
    assert await engine.presence.get("a") == {}
    node.on_resumed(everything)
    await node.idle()
    assert set(await engine.presence.get("a")) == {"C1"}


async def test_disconnect_that_no_other_node_hears_of_has_taken_effect_here(
    node: Node, engine: SuspendedEngine
) -> None:
    """The caller may not take it for a command that was not run."""
    client = RecordingClient("C1", user="17")
    node.hub.add(client)
    engine.failing.add("publish")
    with pytest.raises(NoReply):
        await node.disconnect_user("17")
    assert len(client.closes) == 1


async def test_streams_do_not_wait_for_those_of_a_shard_that_is_away(
    node: Node, engine: SuspendedEngine, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(engine.broker, "shard", lambda channel: int(channel == "there"))
    client = RecordingClient()
    away = [f"away{number}" for number in range(50)]
    for channel in away:
        await subscribe(node, RecordingClient(), RECOVERABLE, channel)
    await subscribe(node, client, RECOVERABLE, "there")
    node.on_interrupted(everything)
    for channel in (*away, "there"):
        await lose(node, RECOVERABLE, 1, channel)
    history, attempts = engine.broker.history, Counter[str]()

    async def history_of_one_shard(channel: str, since: int = 0) -> History:
        attempts[channel] += 1
        if channel != "there" or attempts[channel] < 3:
            raise EngineUnavailable("it loads its data")
        return await history(channel, since)

    monkeypatch.setattr(engine.broker, "history", history_of_one_shard)
    node.on_resumed(everything)
    for _ in range(20):
        await clock.advance(0.5)

    assert published(client) == [1]
