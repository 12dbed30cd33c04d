"""The memory engine: what it keeps, and that reading costs no memory."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterable
from types import ModuleType

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from realtime.engine import memory as memory_engine
from realtime.engine.base import Outgoing
from realtime.engine.lists import Kind
from realtime.engine.memory import MemoryEngine
from realtime.engine.once import Once
from realtime.node.node import Node
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from realtime.timers import Timers
from tests.engine.bench import NODE, RecordingReceiver
from tests.unit.parts import Clock, data, position_of

KEPT = ChannelOptions(history_size=5, history_lifetime=10)
INFO = ClientInfo("17", "C")
WEEK = 7 * 24 * 3600


@pytest.fixture
async def memory(clock: Clock) -> AsyncIterator[MemoryEngine]:
    timers = Timers(asyncio.get_running_loop())
    made = MemoryEngine(timers, meta_lifetime=100)
    await made.start(RecordingReceiver(), NODE.uid)
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


async def publish(
    of: MemoryEngine | Node, channel: str, options: ChannelOptions = KEPT, once: Once | None = None
) -> StreamPosition | None:
    outgoing = Outgoing(channel, Publication(data("1")), options, once)
    return (await of.broker.publish(outgoing)).position


async def test_reading_unknown_channels_does_not_grow_memory(memory: MemoryEngine) -> None:
    await memory.broker.history("warm-up")
    before = objects_held(memory)

    for number in range(100):
        await memory.broker.history(f"h{number}")
        await position_of(memory.broker, f"p{number}")
        await memory.presence.get(f"q{number}")
        await memory.broker.remove_history(f"r{number}")
        await memory.presence.remove(f"s{number}", "C")
        await memory.broker.unsubscribe(f"u{number}")

    assert objects_held(memory) == before


async def test_publishing_without_history_does_not_grow_memory(memory: MemoryEngine) -> None:
    before = objects_held(memory)
    for number in range(100):
        await publish(memory, f"a{number}", ChannelOptions())
    assert objects_held(memory) == before


async def test_empty_presence_is_not_kept_for_longer_than_its_lifetime(
    memory: MemoryEngine, clock: Clock
) -> None:
    before = objects_held(memory)
    for number in range(100):
        await memory.presence.add(f"a{number}", [], 60)
    await clock.advance(61)
    assert objects_held(memory) == before


async def test_expired_and_forgotten_streams_are_not_kept(
    memory: MemoryEngine, clock: Clock
) -> None:
    before = objects_held(memory)
    for number in range(100):
        await publish(memory, f"a{number}")
        await memory.presence.add(f"a{number}", [INFO], 10)
    assert objects_held(memory) > before + 200

    await clock.advance(101)

    assert objects_held(memory) <= before + 1  # another epoch


async def test_clients_that_left_are_not_kept(memory: MemoryEngine, clock: Clock) -> None:
    before = objects_held(memory)
    for number in range(100):
        await memory.broker.subscribe(f"a{number}")
        await memory.presence.add(f"a{number}", [INFO], 10)
        await memory.presence.remove(f"a{number}", "C")
        await memory.broker.unsubscribe(f"a{number}")

    await clock.advance(11)

    assert objects_held(memory) <= before + 1  # a number that was another's, too


async def test_epochs_of_two_engines_differ(memory: MemoryEngine) -> None:
    other = MemoryEngine(Timers(asyncio.get_running_loop()))
    assert (await position_of(memory.broker, "a")).epoch != (
        await position_of(other.broker, "a")
    ).epoch


async def test_forgetting_a_channel_does_not_change_the_position_of_unused_ones(
    memory: MemoryEngine, clock: Clock
) -> None:
    """Their subscribers would be disconnected."""
    await memory.broker.subscribe("quiet")
    quiet = await position_of(memory.broker, "quiet")
    await publish(memory, "other")

    await clock.advance(101)

    assert await position_of(memory.broker, "quiet") == quiet
    first = await publish(memory, "quiet")
    assert first is not None
    assert first.epoch == quiet.epoch


async def test_stream_outlives_the_deadline_of_an_earlier_one_of_its_channel(
    memory: MemoryEngine, clock: Clock, mishaps: list[object]
) -> None:
    kept = ChannelOptions(history_size=5, history_lifetime=50)
    await memory.broker.subscribe("a")
    await position_of(memory.broker, "a")
    await memory.broker.unsubscribe("a")

    await clock.advance(60)
    first = await publish(memory, "a", kept)
    await clock.advance(41)  # 101 seconds after the first stream was used last

    history = await memory.broker.history("a")
    assert (len(history.publications), history.position) == (1, first)
    await clock.advance(101)
    assert (await position_of(memory.broker, "a")).offset == 0
    assert mishaps == []


# what is forgotten, through the options


async def start_node(**options: object) -> Node:
    """A node with its own memory engine."""
    node = Node(load(options))
    await node.start()
    return node


async def positions(node: Node, channels: Iterable[str]) -> list[int]:
    """The offsets of channels."""
    return [(await position_of(node.broker, channel)).offset for channel in channels]


@pytest.mark.parametrize("option", ["memory_history_meta_ttl", "history_meta_ttl"])
async def test_unused_streams_are_forgotten_when_the_time_in_the_options_is_over(
    clock: Clock, mishaps: list[object], option: str
) -> None:
    node = await start_node(history_size=5, history_lifetime=10, **{option: WEEK})
    names = [f"a{number}" for number in range(100)]
    before = [await position_of(node.broker, name) for name in names]
    for name in names:
        await publish(node, name, node.config.channel)

    await clock.advance(WEEK - 1)
    assert await positions(node, ["a0"]) == [1]  # looking at it is using it
    await clock.advance(2)

    assert await positions(node, names) == [1] + [0] * 99
    after = [await position_of(node.broker, name) for name in names[1:]]
    assert {position.epoch for position in before}.isdisjoint(p.epoch for p in after)
    assert mishaps == []
    await node.stop()


async def test_stream_with_a_subscriber_is_kept_until_that_time_after_it_left(
    clock: Clock, mishaps: list[object]
) -> None:
    node = await start_node(memory_history_meta_ttl=WEEK)
    await node.broker.subscribe("a")
    position = await publish(node, "a")

    await clock.advance(10 * WEEK)
    await node.broker.unsubscribe("a")
    await clock.advance(WEEK - 1)
    kept = await position_of(node.broker, "a")
    await clock.advance(WEEK + 1)

    assert kept == position
    assert await positions(node, ["a"]) == [0]
    assert mishaps == []
    await node.stop()


@pytest.mark.parametrize("options", [{}, {"memory_history_meta_ttl": 0}], ids=["default", "0"])
async def test_few_streams_are_kept_forever_when_the_option_is_0(
    clock: Clock, options: dict[str, object]
) -> None:
    node = await start_node(**options)
    position = await publish(node, "a")
    await clock.advance(520 * WEEK)
    assert await position_of(node.broker, "a") == position
    await node.stop()


async def test_channels_that_were_subscribed_and_left_are_not_kept(memory: MemoryEngine) -> None:
    before = objects_held(memory)

    for number in range(1000):
        await memory.broker.subscribe(f"a{number}")
        await position_of(memory.broker, f"a{number}")
        await memory.broker.unsubscribe(f"a{number}")

    assert objects_held(memory) < before + 1000, "less than one object a channel"


async def test_position_of_an_expired_stream_costs_little_more_than_its_name(
    memory: MemoryEngine, clock: Clock
) -> None:
    number = 1000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for each in range(number):
            await publish(memory, f"a{each}")
        await clock.advance(KEPT.history_lifetime + 1)
        cost = (tracemalloc.get_traced_memory()[0] - before) / number
    finally:
        tracemalloc.stop()

    assert cost < 1200  # bytes; an empty deque and a timer are 1500 more
    assert (await position_of(memory.broker, "a7")).offset == 1


@pytest.mark.parametrize("meta_lifetime", [0, 100], ids=["kept forever", "kept for a time"])
async def test_positions_without_publications_and_subscribers_are_bounded_in_number(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, meta_lifetime: int
) -> None:
    monkeypatch.setattr("realtime.engine.memory.MAX_IDLE_STREAMS", 10)
    engine = MemoryEngine(Timers(asyncio.get_running_loop()), meta_lifetime=meta_lifetime)
    await engine.broker.subscribe("quiet")
    quiet = await position_of(engine.broker, "quiet")
    names = [f"a{number}" for number in range(30)]
    before = [await publish(engine, name) for name in names]
    await engine.broker.subscribe("a0")

    await clock.advance(KEPT.history_lifetime)

    after = [await position_of(engine.broker, name) for name in names]
    assert after[:1] + after[20:] == before[:1] + before[20:]
    assert [position.offset for position in after[1:20]] == [0] * 19
    assert await position_of(engine.broker, "quiet") == quiet, "its subscribers would be closed"
    # what begins anew must not look like what was forgotten
    assert {position.epoch for position in after[1:20]}.isdisjoint(p.epoch for p in before if p)


async def test_keys_of_idempotency_are_bounded_and_those_that_end_first_go_first(
    memory: MemoryEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_engine, "MAX_KEYS", 3)

    async def publish_once(key: str, lifetime: int) -> StreamPosition | None:
        return await publish(memory, "a", once=Once(key, lifetime))

    first = [await publish_once(key, lifetime) for key, lifetime in [("x", 9), ("y", 5), ("z", 7)]]
    await publish_once("w", 8)  # "y" is forgotten

    assert await publish_once("x", 9) == first[0]
    assert await publish_once("z", 7) == first[2]
    assert await publish_once("y", 5) != first[1]


async def test_keys_of_idempotency_leave_nothing(memory: MemoryEngine, clock: Clock) -> None:
    for number in range(100):
        once = Once(str(number), 10 + number)
        await publish(memory, "a", ChannelOptions(), once)
    await clock.advance(59.5)  # 10 to 59
    assert len(memory.broker._once_keys.positions) == 50

    await clock.advance(60)

    assert memory.broker._once_keys.positions == {}
    assert memory.broker._once_keys._ends == []


async def test_users_who_went_offline_are_bounded(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime.engine.memory.MAX_SEEN", 2)
    memory.lists.seen.note()
    for user in "789":
        memory.lists.add(Kind.USERS, user)
        memory.lists.discard(Kind.USERS, user)

    assert list(await memory.lists.seen.users(10)) == ["7", "8"]
