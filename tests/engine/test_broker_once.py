"""The contract of `engine.base.Broker`, for every engine: idempotency keys."""

from __future__ import annotations

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.once import Once
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import KEPT, PLAIN, Bench
from tests.unit.parts import data, position_of

WITH_AND_WITHOUT = pytest.mark.parametrize(
    "options", [KEPT, PLAIN], ids=["with history", "without history"]
)


async def publish(
    engine: Bench, channel: str, value: int, once: Once, options: ChannelOptions = KEPT
) -> StreamPosition | None:
    publication = Publication(data(str(value)), uid=f"u{value}")
    return (await engine.broker.publish(Outgoing(channel, publication, options, once))).position


async def arrived(engine: Bench, channel: str, options: ChannelOptions) -> list[int]:
    """Return the data of what was delivered, all of it: one more follows as the last."""
    before = len(engine.receiver.publications[channel])
    await engine.publish(channel, 99, options=options)
    await engine.received(channel, before + 1)
    while 99 not in engine.values(channel):
        await engine.received(channel, len(engine.values(channel)) + 1)
    return engine.values(channel)[:-1]


@WITH_AND_WITHOUT
async def test_key_publishes_once(engine: Bench, unique: str, options: ChannelOptions) -> None:
    await engine.broker.subscribe(unique)
    key = Once("k")

    first = await publish(engine, unique, 1, key, options)
    other = await publish(engine, unique, 2, Once("l"), options)
    again = await publish(engine, unique, 3, key, options)

    assert again == first
    if options.keeps_history:
        assert first is not None
        assert await position_of(engine.broker, unique) == other
        assert other == StreamPosition(2, first.epoch)
        assert await engine.kept_values(unique) == [1, 2]
    assert await arrived(engine, unique, options) == [1, 2]


@WITH_AND_WITHOUT
async def test_key_belongs_to_its_channel(
    engine: Bench, unique: str, options: ChannelOptions
) -> None:
    channels = [unique, f"{unique}k"]
    for channel in channels:
        await engine.broker.subscribe(channel)

    await publish(engine, channels[0], 1, Once("kk"), options)
    await publish(engine, channels[1], 2, Once("k"), options)  # the same text, put together

    assert await arrived(engine, channels[0], options) == [1]
    assert await arrived(engine, channels[1], options) == [2]


@WITH_AND_WITHOUT
async def test_key_is_forgotten_after_its_lifetime(
    engine: Bench, unique: str, options: ChannelOptions
) -> None:
    await engine.broker.subscribe(unique)
    await publish(engine, unique, 1, Once("short", 10), options)
    await publish(engine, unique, 2, Once("long", 60), options)
    await engine.elapse(11)

    await publish(engine, unique, 3, Once("short", 10), options)
    await publish(engine, unique, 4, Once("long", 60), options)

    assert await arrived(engine, unique, options) == [1, 2, 3]


async def test_any_text_is_a_key(engine: Bench, unique: str) -> None:
    keys = ("", " ", "a:b", "ü\n\x00", "\ud83d", "x" * 100_000)
    for number, key in enumerate(keys):
        first = await publish(engine, unique, number, Once(key))
        assert await publish(engine, unique, 99, Once(key)) == first
    assert await engine.kept_values(unique) == [1, 2, 3, 4, 5]  # of six: as many as are kept


async def test_key_outlives_what_it_published(engine: Bench, unique: str) -> None:
    first = await publish(engine, unique, 1, Once("k"))
    await engine.broker.remove_history(unique)
    assert await publish(engine, unique, 2, Once("k")) == first
    assert await engine.kept(unique) == []


async def test_key_counts_also_when_the_channel_gets_or_loses_its_history(
    engine: Bench, unique: str
) -> None:
    """Options may change between two attempts."""
    await publish(engine, unique, 1, Once("a"), PLAIN)
    await publish(engine, unique, 2, Once("b"), KEPT)
    assert await publish(engine, unique, 3, Once("a"), KEPT) is None
    await publish(engine, unique, 4, Once("b"), PLAIN)
    assert await engine.kept_values(unique) == [2]


async def test_several_with_one_key_publish_the_first_of_each_channel(
    engine: Bench, unique: str
) -> None:
    other = f"{unique}-other"
    several = [
        Outgoing(channel, Publication(data(str(value)), uid=f"u{value}"), KEPT, Once("k"))
        for value, channel in enumerate([unique, other, unique])
    ]

    results = await engine.broker.publish_many(several)

    assert isinstance(results[0], Published)
    assert isinstance(results[1], Published)
    assert results[2] == Published(results[0].position, kept=False)
    assert await engine.kept_values(unique) == [0]
    assert await engine.kept_values(other) == [1]
    again = await engine.broker.publish_many(several)
    assert again == [
        Published(each.position, kept=False) for each in results if isinstance(each, Published)
    ]
