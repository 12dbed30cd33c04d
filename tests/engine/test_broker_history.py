"""The contract of `engine.base.Broker`, for every engine: parts of streams, epochs."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import KEPT, PLAIN, Bench, untimed
from tests.unit.parts import data, position_of

# history from an offset on


FORWARD = {
    "the beginning": (0, None, [4, 5, 6, 7, 8]),
    "before what is kept": (2, None, [4, 5, 6, 7, 8]),
    "the first kept": (4, None, [4, 5, 6, 7, 8]),
    "in between": (6, None, [6, 7, 8]),
    "the last": (8, None, [8]),
    "the next": (9, None, []),
    "far ahead": (1000, None, []),
    "the first three": (None, 3, [4, 5, 6]),
    "three before what is kept": (2, 3, [4, 5, 6]),
    "two in between": (6, 2, [6, 7]),
    "more than there are": (7, 100, [7, 8]),
    "a huge number": (None, 10**30, [4, 5, 6, 7, 8]),
    "none": (None, 0, []),
    "none from an offset on": (5, 0, []),
}
REVERSE = {
    "all": (None, None, [8, 7, 6, 5, 4]),
    "the newest two": (None, 2, [8, 7]),
    "from an offset": (6, None, [6, 5, 4]),
    "two from an offset": (6, 2, [6, 5]),
    "the oldest": (4, 3, [4]),
    "before what is kept": (3, None, []),
    "before the first": (0, None, []),
    "far before the first": (-(10**30), None, []),
    "beyond the top": (100, 1, [8]),
    "beyond every offset": (2**64, 1, [8]),
    "a huge number": (None, 10**30, [8, 7, 6, 5, 4]),
    "none": (None, 0, []),
}


ANY = [2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30]


@pytest.mark.parametrize(
    ("parts", "reverse"), [(FORWARD, False), (REVERSE, True)], ids=["forward", "reverse"]
)
async def test_part_of_history_is_read(
    engine: Bench,
    unique: str,
    parts: dict[str, tuple[int | None, int | None, list[int]]],
    reverse: bool,
) -> None:
    """The stream has eight publications, of which five are kept."""
    position = await engine.publish(unique, *range(1, 9))

    found = {
        name: await engine.broker.history(unique, start, limit, reverse=reverse)
        for name, (start, limit, _) in parts.items()
    }

    offsets = {name: [p.offset for p in history.publications] for name, history in found.items()}
    values = {
        name: [int(p.data.raw) for p in history.publications] for name, history in found.items()
    }
    assert offsets == values == {name: expected for name, (_, _, expected) in parts.items()}
    assert {(history.position, history.top_uid) for history in found.values()} == {(position, "u8")}


@pytest.mark.parametrize("published", [0, 3])
async def test_history_may_be_read_from_any_offset_on(
    engine: Bench, unique: str, published: int
) -> None:
    await engine.publish(unique, *range(published))

    found = {since: await engine.broker.history(unique, since) for since in ANY}

    assert {since: (each.publications, each.position.offset) for since, each in found.items()} == (
        dict.fromkeys(ANY, ((), published))
    )


async def test_offsets_beyond_ten_are_in_the_order_of_numbers(engine: Bench, unique: str) -> None:
    options = ChannelOptions(history_size=200, history_lifetime=100)
    await engine.publish(unique, *range(120), options=options)
    history = await engine.broker.history(unique, 9)
    assert [publication.offset for publication in history.publications] == [*range(9, 121)]


async def test_history_of_an_unused_channel_is_empty_in_both_directions(
    engine: Bench, unique: str
) -> None:
    position = await position_of(engine.broker, unique)
    for reverse in (False, True):
        history = await engine.broker.history(unique, None, 5, reverse=reverse)
        assert (history.publications, history.position) == ((), position)


async def test_positions_of_several_channels_are_those_of_each(engine: Bench, unique: str) -> None:
    channels = [f"{unique}-{number}" for number in range(20)]
    for number in range(10):
        await engine.publish(channels[number], *range(number))

    positions = await engine.broker.positions(channels)

    assert positions == [await position_of(engine.broker, channel) for channel in channels]
    assert [position.offset for position in positions] == [*range(10), *[0] * 10]
    assert await engine.broker.positions([]) == []


# what a publication carries


async def test_history_has_times_that_do_not_go_back(engine: Bench, unique: str) -> None:
    await engine.publish(unique, *range(5))
    times = [p.time for p in (await engine.broker.history(unique)).publications]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000  # Unix time in milliseconds


@pytest.mark.parametrize("options", [KEPT, PLAIN], ids=["with history", "without history"])
async def test_tags_arrive_and_are_kept(
    engine: Bench, unique: str, options: ChannelOptions
) -> None:
    await engine.broker.subscribe(unique)
    tags = {"kind": "goal", "größe": "", "": "<&>"}

    await engine.broker.publish(
        Outgoing(unique, Publication(data("1"), uid="u", tags=tags), options)
    )
    await engine.broker.publish(Outgoing(unique, Publication(data("2"), uid="v", tags={}), options))

    received = await engine.received(unique, 2)
    assert [dict(publication.tags or {}) for publication in received] == [tags, {}]
    kept = (await engine.broker.history(unique)).publications
    assert untimed(kept) == (untimed(received) if options is KEPT else [])


# epochs


async def test_lost_epoch_is_renewed_once_however_often_that_is_noticed(
    engine: Bench, unique: str
) -> None:
    other = await engine.publish(f"{unique}-other", 1)
    before = await engine.publish(unique, 1, 2)
    assert before is not None

    await engine.broker.renew_epoch(unique, "another")  # that one was not lost
    assert await position_of(engine.broker, unique) == before
    await asyncio.gather(*(engine.broker.renew_epoch(unique, before.epoch) for _ in range(5)))
    position = await position_of(engine.broker, unique)
    await engine.broker.renew_epoch(unique, before.epoch)

    assert position.epoch != before.epoch
    assert (await engine.broker.history(unique)).position == position
    assert await engine.publish(unique, 3) == StreamPosition(3, position.epoch)
    assert await position_of(engine.broker, f"{unique}-other") == other


async def test_epoch_stays_the_same_without_a_reason(engine: Bench, unique: str) -> None:
    for number in (0, 1, 3):
        channel = f"{unique}-{number}"
        await engine.publish(channel, *range(number))

        positions = [await position_of(engine.broker, channel) for _ in range(3)]
        await engine.broker.remove_history(channel)
        await engine.publish(f"{unique}-other", 1)
        positions.append(await position_of(engine.broker, channel))

        assert len({position.epoch for position in positions}) == 1
        assert {position.offset for position in positions} == {number}
