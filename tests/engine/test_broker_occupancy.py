"""The contract of `engine.base.Broker`, for every engine: occupied and vacated channels."""

from __future__ import annotations

import asyncio
import random

from tests.engine.bench import Bench
from tests.unit.parts import eventually


async def test_first_subscribe_occupies_a_channel_and_last_unsubscribe_vacates_it(
    engine: Bench, unique: str
) -> None:
    for number in range(1, 4):
        await engine.broker.subscribe(unique)  # reported before it returns
        assert engine.receiver.occupied == [unique] * number
        assert engine.receiver.vacated == [unique] * (number - 1)
        await engine.broker.unsubscribe(unique)
        await eventually(lambda number=number: engine.receiver.vacated == [unique] * number)  # type: ignore[misc]


async def test_subscribing_twice_occupies_once(engine: Bench, unique: str) -> None:
    await engine.broker.subscribe(unique)
    await engine.broker.subscribe(unique)
    await engine.broker.unsubscribe(unique)
    await eventually(lambda: engine.receiver.vacated == [unique])
    assert engine.receiver.occupied == [unique]


async def test_unsubscribing_without_a_subscription_vacates_nothing(
    engine: Bench, unique: str
) -> None:
    await engine.broker.unsubscribe(unique)
    await engine.broker.subscribe(f"{unique}-after")
    await engine.broker.unsubscribe(f"{unique}-after")
    await eventually(lambda: bool(engine.receiver.vacated))
    assert engine.receiver.vacated == [f"{unique}-after"]


async def test_channels_are_occupied_and_vacated_one_by_one(engine: Bench, unique: str) -> None:
    names = [f"{unique}-{number}" for number in range(500)]  # more than one step takes

    await asyncio.gather(*(engine.broker.subscribe(name) for name in names))
    await asyncio.gather(*(engine.broker.unsubscribe(name) for name in names))

    await eventually(lambda: len(engine.receiver.vacated) >= len(names))
    assert sorted(engine.receiver.occupied) == sorted(names)
    assert sorted(engine.receiver.vacated) == sorted(names)


async def test_occupied_and_vacated_alternate_however_quickly_a_channel_changes(
    engine: Bench, unique: str
) -> None:
    chance = random.Random(3)
    names = [f"{unique}-{number}" for number in range(10)]
    subscribed: set[str] = set()
    for _ in range(300):
        name = chance.choice(names)
        if name in subscribed:
            subscribed.remove(name)
            await engine.broker.unsubscribe(name)
        else:
            subscribed.add(name)
            await engine.broker.subscribe(name)

    def reported(name: str) -> int:
        return engine.receiver.occupied.count(name) - engine.receiver.vacated.count(name)

    await eventually(lambda: all(reported(name) == (name in subscribed) for name in names))
    for name in names:
        kinds = [kind for kind, channel in engine.receiver.occupancy if channel == name]
        assert kinds == (["occupied", "vacated"] * len(kinds))[: len(kinds)]
