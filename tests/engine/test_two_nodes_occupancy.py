"""Two nodes of one service: a channel is occupied once and vacated once, over both."""

from __future__ import annotations

import asyncio
import random

from realtime.engine.lists import Kind
from tests.engine.bench import NODE, NODE_LIFETIME, SECOND_NODE, Bench, Pair
from tests.unit.parts import eventually

Reports = tuple[list[str], list[str]]


def occupied(pair: Pair) -> Reports:
    return pair.one.receiver.occupied, pair.other.receiver.occupied


def vacated(pair: Pair) -> Reports:
    return pair.one.receiver.vacated, pair.other.receiver.vacated


async def settled(bench: Bench, unique: str) -> None:
    """Wait until the earlier changes of a node are written."""
    await bench.broker.subscribe(f"{unique}-settled")


async def test_of_nodes_that_subscribe_or_leave_at_the_same_time_exactly_one_gets_the_report(
    pair: Pair, unique: str
) -> None:
    names = [f"{unique}-{number}" for number in range(300)]

    await asyncio.gather(
        *(bench.broker.subscribe(name) for name in names for bench in pair),
    )

    one, other = occupied(pair)
    assert sorted([*one, *other]) == sorted(names)
    await asyncio.gather(*(bench.broker.unsubscribe(name) for name in names for bench in pair))
    for bench in pair:
        await settled(bench, unique)
    one, other = vacated(pair)
    assert sorted([*one, *other]) == sorted(names)


async def test_channel_that_moves_between_nodes_stays_occupied(pair: Pair, unique: str) -> None:
    await pair.one.broker.subscribe(unique)
    for _ in range(3):
        await pair.other.broker.subscribe(unique)
        await pair.one.broker.unsubscribe(unique)
        await settled(pair.one, unique)
        await pair.one.broker.subscribe(unique)
        await pair.other.broker.unsubscribe(unique)
        await settled(pair.other, unique)

    one, other = occupied(pair)
    assert [name for name in [*one, *other] if name == unique] == [unique]
    assert vacated(pair) == ([], [])


async def test_occupied_and_vacated_are_balanced_however_nodes_come_and_go(
    pair: Pair, unique: str
) -> None:
    chance = random.Random(5)
    names = [f"{unique}-{number}" for number in range(10)]
    subscribed: set[tuple[int, str]] = set()

    async def change(number: int) -> None:
        broker = pair[number].broker
        for _ in range(200):
            place = number, chance.choice(names)
            if place in subscribed:
                subscribed.remove(place)
                await broker.unsubscribe(place[1])
            else:
                subscribed.add(place)
                await broker.subscribe(place[1])

    await asyncio.gather(change(0), change(1))
    for bench in pair:
        await settled(bench, unique)

    there = {name for _, name in subscribed}
    assert there
    for name in names:
        times = sum(reported.count(name) for reported in occupied(pair))
        ends = sum(reported.count(name) for reported in vacated(pair))
        assert times - ends == (name in there)
        assert times > 0


async def test_channels_of_a_node_that_died_count_until_they_are_swept(
    pair: Pair, unique: str
) -> None:
    for bench in pair:
        await bench.broker.subscribe(f"{unique}-both")
    await pair.one.broker.subscribe(f"{unique}-one")
    await pair.one.elapse(NODE_LIFETIME + 1)  # the first says nothing any more
    await pair.other.cluster.announce(SECOND_NODE, NODE_LIFETIME)

    await pair.other.broker.subscribe(f"{unique}-one")
    await pair.other.broker.unsubscribe(f"{unique}-both")
    await settled(pair.other, unique)

    assert f"{unique}-one" not in pair.other.receiver.occupied
    assert pair.other.receiver.vacated == []
    swept = await pair.other.engine.lists.sweep("attempt")
    assert swept == (Kind.CHANNELS, [f"{unique}-both"])


async def test_node_that_withdrew_does_not_count(pair: Pair, unique: str) -> None:
    await pair.one.broker.subscribe(unique)
    await pair.one.cluster.withdraw(NODE)
    await pair.other.broker.subscribe(unique)
    assert pair.other.receiver.occupied == [unique]


async def test_lost_set_is_written_again_without_a_report(pair: Pair, unique: str) -> None:
    await pair.one.broker.subscribe(unique)
    pair.one.lose_list(Kind.CHANNELS, NODE.uid)

    await pair.one.cluster.announce(NODE, NODE_LIFETIME)

    assert await pair.other.channels() == [unique]
    assert occupied(pair) == ([unique], [])
    assert vacated(pair) == ([], [])


async def test_channel_left_while_its_list_is_lost_is_vacated(pair: Pair, unique: str) -> None:
    await pair.one.broker.subscribe(unique)
    pair.one.lose_list(Kind.CHANNELS, NODE.uid)
    await pair.one.broker.unsubscribe(unique)
    await eventually(lambda: pair.one.receiver.vacated == [unique])
