"""The contract of `engine.base.Broker`, for every engine: several at once, and order."""

from __future__ import annotations

import asyncio
import random
from itertools import product

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Joined, Left, Outgoing, Published
from realtime.protocol.messages import ClientInfo, Publication, StreamPosition
from tests.engine.bench import PLAIN, Bench, comes_true, several, untimed
from tests.unit.parts import data, eventually, position_of, turns

LONG = ChannelOptions(history_size=1000, history_lifetime=100)


# several publications


@pytest.mark.parametrize("options", [PLAIN, LONG], ids=["without history", "with history"])
async def test_several_publications_arrive_in_their_order(
    engine: Bench, unique: str, options: ChannelOptions
) -> None:
    names = [f"{unique}-{number}" for number in range(3)]
    for name in names:
        await engine.broker.subscribe(name)

    results = await engine.broker.publish_many(several(names, range(60), options))

    for number, name in enumerate(names):
        positions = [
            StreamPosition(offset, (await position_of(engine.broker, name)).epoch)
            for offset in range(1, 21)
        ]
        expected = map(Published, positions if options.keeps_history else [None] * 20)
        assert results[number::3] == list(expected)
        await engine.received(name, 20)
        assert engine.values(name) == [*range(number, 60, 3)]
        assert await engine.kept_values(name) == (
            engine.values(name) if options.keeps_history else []
        )
    assert await engine.broker.publish_many([]) == []


async def test_with_and_without_history_may_be_published_together(
    engine: Bench, unique: str
) -> None:
    await engine.broker.subscribe(unique)
    publications = several([unique], range(3), LONG) + several([unique], range(3, 5), PLAIN)

    results = await engine.broker.publish_many(publications)

    epoch = (await position_of(engine.broker, unique)).epoch
    positions = [StreamPosition(offset, epoch) for offset in (1, 2, 3)]
    assert results == [Published(position) for position in (*positions, None, None)]

    await engine.received(unique, 5)
    assert sorted(engine.values(unique)) == [0, 1, 2, 3, 4]
    assert await engine.kept_values(unique) == [0, 1, 2]


async def test_each_of_several_publishers_keeps_its_order(engine: Bench, unique: str) -> None:
    await engine.broker.subscribe(unique)

    await asyncio.gather(
        *(
            engine.broker.publish_many(several([unique], range(start, start + 20), LONG))
            for start in (0, 100, 200)
        )
    )

    await engine.received(unique, 60)
    arrived = engine.values(unique)
    assert await engine.kept_values(unique) == arrived
    for start in (0, 100, 200):
        own = [value for value in arrived if start <= value < start + 20]
        assert own == [*range(start, start + 20)]


# subscribing


async def test_nothing_published_after_subscribing_is_missed(engine: Bench, unique: str) -> None:
    names = [f"{unique}-{number}" for number in range(40)]

    async def subscribe_and_publish(name: str) -> None:
        await engine.broker.subscribe(name)
        await engine.publish(name, 1, options=PLAIN)

    await asyncio.gather(*(subscribe_and_publish(name) for name in names))

    for name in names:
        assert len(await engine.received(name, 1)) == 1


@pytest.mark.parametrize("subscribed", [True, False], ids=["subscribed", "unsubscribed"])
async def test_subscribing_and_unsubscribing_take_effect_in_their_order(
    engine: Bench, unique: str, subscribed: bool
) -> None:
    for seed, pause in product(range(3), (1, 4)):  # at once, and one after another
        await change_often(engine, f"{unique}-{seed}-{pause}", seed, pause, subscribed)


async def change_often(
    engine: Bench, channel: str, seed: int, pause: int, subscribed: bool
) -> None:
    """Subscribe and unsubscribe many times, then look which of them was last."""
    chance = random.Random(seed)
    last = f"{channel}-last"
    under_way = []

    for change in [*(chance.random() < 0.5 for _ in range(40)), subscribed]:
        turn = engine.broker.subscribe if change else engine.broker.unsubscribe
        under_way.append(asyncio.create_task(turn(channel)))
        await turns(chance.randrange(pause))
    await asyncio.gather(*under_way)
    await engine.broker.subscribe(last)
    await engine.publish(channel, 1, options=PLAIN)
    await engine.publish(last, 2, options=PLAIN)

    await engine.received(last, 1)
    if subscribed:
        await engine.received(channel, 1)
    assert engine.values(channel) == ([1] if subscribed else [])
    await comes_true(lambda: _is_occupied(engine, channel, subscribed))


async def _is_occupied(engine: Bench, channel: str, expected: bool) -> bool:
    return engine.receiver.is_occupied(channel) is expected


async def test_channel_may_be_subscribed_twice_left_twice_and_subscribed_again(
    engine: Bench, unique: str
) -> None:
    for change, values in (
        (engine.broker.subscribe, [1, 2]),
        (engine.broker.subscribe, [1, 2, 3, 4]),
        (engine.broker.unsubscribe, [1, 2, 3, 4]),
        (engine.broker.unsubscribe, [1, 2, 3, 4]),
        (engine.broker.subscribe, [1, 2, 3, 4, 5, 6]),
    ):
        await change(unique)
        await engine.publish(unique, *(values[-2:]), options=PLAIN)
        if change == engine.broker.subscribe:
            await engine.received(unique, len(values))
        assert engine.values(unique) == values
    assert engine.receiver.is_occupied(unique)


# joins and leaves


async def test_join_leave_and_publication_carry_the_info_as_it_is(
    engine: Bench, unique: str
) -> None:
    for number, info in enumerate(
        (
            ClientInfo("", "C"),
            ClientInfo("17", "C", data('{ "a": [1.0, null, "é<"] }')),
            ClientInfo("17", "C", None, data("null")),
            ClientInfo("Zoë 🎈", "C", data('""'), data("-1e5")),
        )
    ):
        await carry(engine, f"{unique}-{number}", info)


async def carry(engine: Bench, channel: str, info: ClientInfo) -> None:
    await engine.broker.subscribe(channel)

    await engine.broker.notify(channel, Joined(info))
    publication = Publication(data('{ "n": 1.0 }'), info, 0, "uid")
    await engine.broker.publish(Outgoing(channel, publication, LONG))
    await engine.broker.publish(Outgoing(channel, Publication(data('{ "n": 1.0 }'), info), PLAIN))
    await engine.broker.notify(channel, Left(info))

    await eventually(lambda: bool(engine.receiver.leaves[channel]))
    assert engine.receiver.joins[channel] == [info]
    assert engine.receiver.leaves[channel] == [info]
    kept, plain = await engine.received(channel, 2)
    assert untimed([kept]) == [Publication(data('{ "n": 1.0 }'), info, 1, "uid")]
    assert plain == Publication(data('{ "n": 1.0 }'), info)
    assert engine.receiver.publications[channel][1][1] is None
    assert untimed((await engine.broker.history(channel)).publications) == untimed([kept])


async def test_joins_leaves_and_publications_arrive_in_the_order_of_publishing(
    engine: Bench, unique: str
) -> None:
    await engine.broker.subscribe(unique)
    info = ClientInfo("17", "C")

    for _ in range(5):
        await engine.broker.notify(unique, Joined(info))
        await engine.publish(unique, 1, options=PLAIN)
        await engine.broker.notify(unique, Left(info))

    await eventually(lambda: len(engine.receiver.leaves[unique]) == 5)
    assert engine.receiver.events == 5 * [
        ("join", unique),
        ("publication", unique),
        ("leave", unique),
    ]
