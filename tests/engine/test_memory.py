"""The memory engine: what it holds, and that looking costs nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from types import ModuleType

import pytest

from realtime.engine.memory import MemoryEngine
from realtime.options import ChannelOptions
from realtime.protocol.messages import ClientInfo, Publication
from realtime.timers import Timers
from tests.engine.bench import RecordingReceiver
from tests.unit.parts import Clock, data

KEPT = ChannelOptions(history_size=5, history_lifetime=10)
INFO = ClientInfo("17", "C")


@pytest.fixture
async def memory(clock: Clock) -> AsyncIterator[MemoryEngine]:
    timers = Timers(asyncio.get_running_loop())
    made = MemoryEngine(timers, meta_lifetime=100)
    await made.start(RecordingReceiver())
    yield made
    await made.stop()
    timers.close()


def objects_held(engine: MemoryEngine) -> int:
    """How many objects can be reached from an engine, its clock and classes aside."""
    seen: dict[int, object] = {}
    waiting: list[object] = [engine]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(
            thing, type | ModuleType | asyncio.AbstractEventLoop | asyncio.Handle
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
