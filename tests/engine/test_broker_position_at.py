"""The position of a channel at an earlier time, for every engine."""

from __future__ import annotations

import random
import time

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.engine.versions import Version
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import Bench
from tests.unit.parts import data, position_of

LONG = ChannelOptions(history_size=1000, history_lifetime=100)


def wait_a_millisecond() -> None:
    stamp = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= stamp:
        pass  # the clock of the loop stands still with the memory engine


async def publish_later(engine: Bench, channel: str, *values: int) -> int:
    """Publish in a later millisecond than anything before; return the time of the last one."""
    wait_a_millisecond()
    await engine.publish(channel, *values, options=LONG)
    history = await engine.broker.history(channel, limit=1, reverse=True)
    return history.publications[0].time


async def test_position_at_a_later_time_is_the_top(engine: Bench, unique: str) -> None:
    position = await engine.publish(unique, 1, 2, 3)
    last = (await engine.broker.history(unique)).publications[-1].time
    assert await position_of(engine.broker, unique, last) == position
    assert await position_of(engine.broker, unique, last + 1) == position
    assert await engine.broker.positions([unique], last) == [position]


async def test_position_at_any_time_without_publications_is_the_first_one(
    engine: Bench, unique: str
) -> None:
    first = await position_of(engine.broker, unique)
    assert first.offset == 0
    assert await position_of(engine.broker, unique, 1) == first
    assert await position_of(engine.broker, unique, 2**60) == first


async def test_positions_at_a_time_are_those_of_each_channel(engine: Bench, unique: str) -> None:
    names = [f"{unique}-{number}" for number in range(5)]
    for number, name in enumerate(names):
        await engine.publish(name, *range(number), options=LONG)
    at = max(time.time_ns() // 1_000_000, await publish_later(engine, names[0], 1))
    for name in names:
        await publish_later(engine, name, 99)

    found = await engine.broker.positions(names, at)

    assert [position.offset for position in found] == [1, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(4))
async def test_position_at_any_time_is_what_a_model_says(
    engine: Bench, unique: str, seed: int
) -> None:
    """Bursts within a millisecond, pauses, trims, removals, and publications that are not kept."""
    chosen = random.Random(seed)
    times: list[int] = []  # of all publications
    kept = 0

    async def publish() -> None:
        nonlocal kept
        size, number = chosen.choice([3, 10, 1000]), chosen.randint(1, 12)
        options = ChannelOptions(history_size=size, history_lifetime=100)
        await engine.publish(unique, *range(number), options=options)
        new = (await engine.broker.history(unique, limit=number, reverse=True)).publications
        times.extend([0] * (number - len(new)) + [each.time for each in reversed(new)])
        kept = min(kept + number, size)

    async def publish_version(number: int) -> None:
        publication = Publication(data("0"), uid="versioned")
        await engine.broker.publish(Outgoing(unique, publication, LONG, version=Version(number)))

    await publish_version(7)
    epoch = (await position_of(engine.broker, unique)).epoch
    times.append((await engine.broker.history(unique)).publications[0].time)
    kept = 1
    for _ in range(25):
        step = chosen.random()
        if step < 0.6:
            await publish()
        elif step < 0.8:
            wait_a_millisecond()
        elif step < 0.9:
            await publish_version(6)  # it is refused, and moves nothing
        else:
            await engine.broker.remove_history(unique)
            kept = 0
        stamps = sorted({0, 2**60, *times, *(each - 1 for each in times[-40:])})
        for at in chosen.sample(stamps, min(len(stamps), 8)):
            reached = [
                n for n in range(len(times) - kept + 1, len(times) + 1) if times[n - 1] <= at
            ]
            expected = max(reached, default=0)
            if times and times[-1] <= at:
                expected = len(times)
            found = await position_of(engine.broker, unique, at)
            assert found == StreamPosition(expected, epoch)
