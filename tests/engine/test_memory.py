"""The memory engine: what it holds, and that looking costs nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from types import ModuleType

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine.memory import MemoryEngine
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo, Publication
from realtime.timers import Timers
from tests.engine.bench import RecordingReceiver
from tests.unit.parts import Clock, data

KEPT = ChannelOptions(history_size=5, history_lifetime=10)
INFO = ClientInfo("17", "C")
WEEK = 7 * 24 * 3600


@pytest.fixture
async def memory(clock: Clock) -> AsyncIterator[MemoryEngine]:
    timers = Timers(asyncio.get_running_loop())
    made = MemoryEngine(timers, meta_lifetime=100)
    await made.start(RecordingReceiver())
    yield made
    await made.stop()
    timers.close()


@pytest.fixture
async def mishaps() -> list[object]:
    """What was raised in callbacks of the event loop."""
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    return raised


def objects_held(engine: MemoryEngine) -> int:
    """How many objects can be reached from an engine; clock, node and classes aside."""
    seen: dict[int, object] = {}
    waiting: list[object] = [engine]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(
            thing,
            type | ModuleType | asyncio.AbstractEventLoop | asyncio.Handle | RecordingReceiver,
        ):
            continue
        seen[id(thing)] = thing
        if not callable(thing) or isinstance(thing, MemoryEngine):
            waiting.extend(gc.get_referents(thing))
    return len(seen)


async def test_other_processes_see_nothing_of_it(memory: MemoryEngine) -> None:
    assert memory.shared is False


async def test_looking_at_unknown_channels_does_not_grow_memory(memory: MemoryEngine) -> None:
    await memory.history("warm-up")
    before = objects_held(memory)

    for number in range(100):
        await memory.history(f"h{number}")
        await memory.position(f"p{number}")
        await memory.presence(f"q{number}")
        await memory.remove_history(f"r{number}")
        await memory.remove_presence(f"s{number}", "C")
        await memory.unsubscribe(f"u{number}")

    assert objects_held(memory) == before


async def test_publishing_without_history_does_not_grow_memory(memory: MemoryEngine) -> None:
    before = objects_held(memory)

    for number in range(100):
        await memory.publish(f"a{number}", Publication(data("1")), ChannelOptions())

    assert objects_held(memory) == before


async def test_presence_of_nobody_is_not_held_for_longer_than_its_lifetime(
    memory: MemoryEngine, clock: Clock
) -> None:
    before = objects_held(memory)

    for number in range(100):
        await memory.add_presence(f"a{number}", [], 60)
    await clock.advance(61)

    assert objects_held(memory) == before


async def test_what_expired_and_was_forgotten_is_not_held(
    memory: MemoryEngine, clock: Clock
) -> None:
    before = objects_held(memory)
    for number in range(100):
        await memory.publish(f"a{number}", Publication(data("1")), KEPT)
        await memory.add_presence(f"a{number}", [INFO], 10)
    assert objects_held(memory) > before + 200

    await clock.advance(101)

    assert objects_held(memory) <= before + 1  # another epoch


async def test_clients_that_left_are_not_held(memory: MemoryEngine, clock: Clock) -> None:
    before = objects_held(memory)
    for number in range(100):
        await memory.subscribe(f"a{number}")
        await memory.add_presence(f"a{number}", [INFO], 10)
        await memory.remove_presence(f"a{number}", "C")
        await memory.unsubscribe(f"a{number}")

    await clock.advance(11)

    assert objects_held(memory) == before


async def test_epochs_of_two_engines_differ(memory: MemoryEngine) -> None:
    other = MemoryEngine(Timers(asyncio.get_running_loop()))

    assert (await memory.position("a")).epoch != (await other.position("a")).epoch


async def test_streams_that_are_in_use_keep_their_epoch_when_another_is_forgotten(
    memory: MemoryEngine, clock: Clock
) -> None:
    await memory.publish("idle", Publication(data("1")), KEPT)
    position = await memory.publish("busy", Publication(data("1")), KEPT)
    await clock.advance(60)
    await memory.position("busy")

    await clock.advance(60)

    assert (await memory.position("idle")).offset == 0
    assert await memory.position("busy") == position


async def test_forgetting_a_channel_leaves_subscribers_of_unused_ones_where_they_are(
    memory: MemoryEngine, clock: Clock
) -> None:
    """Their position would not be right any more: all of them would be disconnected."""
    await memory.subscribe("quiet")
    quiet = await memory.position("quiet")
    await memory.publish("other", Publication(data("1")), KEPT)

    await clock.advance(101)

    assert await memory.position("quiet") == quiet
    first = await memory.publish("quiet", Publication(data("1")), KEPT)
    assert first is not None
    assert first.epoch == quiet.epoch


async def test_positions_of_unused_channels_are_bounded_in_number(
    memory: MemoryEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime.engine.memory.RESTING_ALLOWED", 3)
    await memory.subscribe("watched")
    watched = await memory.publish("watched", Publication(data("1")), KEPT)
    for number in range(10):
        await memory.publish(f"a{number}", Publication(data("1")), KEPT)
    last = await memory.position("a9")

    await clock.advance(KEPT.history_lifetime + 1)

    assert await memory.position("watched") == watched
    assert await memory.position("a9") == last
    first = await memory.position("a0")
    assert first.offset == 0
    assert first.epoch != last.epoch, "what begins anew must not look like what was forgotten"
    assert len(memory._streams) == 4


async def test_stream_outlives_the_deadline_of_an_earlier_one_of_its_channel(
    memory: MemoryEngine, clock: Clock, mishaps: list[object]
) -> None:
    kept = ChannelOptions(history_size=5, history_lifetime=1000)
    await memory.subscribe("a")
    await memory.position("a")
    await memory.unsubscribe("a")

    await clock.advance(60)
    first = await memory.publish("a", Publication(data("1")), kept)
    await clock.advance(41)  # 101 seconds after the first stream was used last

    history = await memory.history("a")
    assert (len(history.publications), history.position) == (1, first)
    await clock.advance(101)
    assert (await memory.position("a")).offset == 0
    assert mishaps == []


# what is forgotten, through the options


async def start_node(**options: object) -> Node:
    """A node with its own memory engine."""
    node = Node(load(options))
    await node.start()
    return node


async def positions(node: Node, channels: Iterable[str]) -> list[int]:
    """The offsets of channels."""
    return [(await node.engine.position(channel)).offset for channel in channels]


async def test_unused_streams_are_forgotten_when_the_time_in_the_options_is_over(
    clock: Clock, mishaps: list[object]
) -> None:
    node = await start_node(memory_history_meta_ttl=WEEK)
    names = [f"a{number}" for number in range(100)]
    before = [await node.engine.position(name) for name in names]
    for name in names:
        await node.engine.publish(name, Publication(data("1")), KEPT)

    await clock.advance(WEEK - 1)
    assert await positions(node, ["a0"]) == [1]  # looking at it is using it
    await clock.advance(2)

    assert await positions(node, names) == [1] + [0] * 99
    after = [await node.engine.position(name) for name in names[1:]]
    assert {position.epoch for position in before}.isdisjoint(p.epoch for p in after)
    assert mishaps == []
    await node.stop()


async def test_stream_with_a_subscriber_is_kept_until_that_time_after_it_left(
    clock: Clock, mishaps: list[object]
) -> None:
    node = await start_node(memory_history_meta_ttl=WEEK)
    await node.engine.subscribe("a")
    position = await node.engine.publish("a", Publication(data("1")), KEPT)

    await clock.advance(10 * WEEK)
    await node.engine.unsubscribe("a")
    await clock.advance(WEEK - 1)
    kept = await node.engine.position("a")
    await clock.advance(WEEK + 1)

    assert kept == position
    assert await positions(node, ["a"]) == [0]
    assert mishaps == []
    await node.stop()


@pytest.mark.parametrize("options", [{}, {"memory_history_meta_ttl": 0}], ids=["default", "0"])
async def test_few_streams_are_kept_for_ever_when_the_option_is_0(
    clock: Clock, options: dict[str, object]
) -> None:
    node = await start_node(**options)
    position = await node.engine.publish("a", Publication(data("1")), KEPT)

    await clock.advance(520 * WEEK)

    assert await node.engine.position("a") == position
    await node.stop()


async def test_channels_that_were_looked_at_and_left_are_not_held(memory: MemoryEngine) -> None:
    before = objects_held(memory)

    for number in range(1000):
        await memory.subscribe(f"a{number}")
        await memory.position(f"a{number}")
        await memory.unsubscribe(f"a{number}")

    assert objects_held(memory) < before + 1000, "less than one object a channel"


@pytest.mark.parametrize("meta_lifetime", [0, 100], ids=["kept for ever", "kept for a time"])
async def test_positions_without_publications_and_subscribers_are_bounded_in_number(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, meta_lifetime: int
) -> None:
    monkeypatch.setattr("realtime.engine.memory.RESTING_ALLOWED", 10)
    engine = MemoryEngine(Timers(asyncio.get_running_loop()), meta_lifetime=meta_lifetime)
    names = [f"a{number}" for number in range(30)]
    for name in names:
        await engine.publish(name, Publication(data("1")), KEPT)
    await engine.subscribe("a0")

    await clock.advance(KEPT.history_lifetime)

    offsets = [(await engine.position(name)).offset for name in names]
    assert offsets == [1] + [0] * 19 + [1] * 10


@pytest.mark.parametrize("meta_lifetime", [0, 100], ids=["kept for ever", "kept for a time"])
async def test_bound_on_positions_leaves_subscribers_of_unused_channels_where_they_are(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, meta_lifetime: int
) -> None:
    """Their position would not be right any more: all of them would be disconnected."""
    monkeypatch.setattr("realtime.engine.memory.RESTING_ALLOWED", 10)
    engine = MemoryEngine(Timers(asyncio.get_running_loop()), meta_lifetime=meta_lifetime)
    await engine.subscribe("quiet")
    quiet = await engine.position("quiet")
    for number in range(30):
        await engine.publish(f"a{number}", Publication(data("1")), KEPT)

    await clock.advance(KEPT.history_lifetime)

    assert await engine.position("quiet") == quiet
