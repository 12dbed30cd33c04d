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


FORWARD = [
    pytest.param(0, None, [4, 5, 6, 7, 8], id="the beginning"),
    pytest.param(2, None, [4, 5, 6, 7, 8], id="before what is kept"),
    pytest.param(4, None, [4, 5, 6, 7, 8], id="the first kept"),
    pytest.param(6, None, [6, 7, 8], id="in between"),
    pytest.param(8, None, [8], id="the last"),
    pytest.param(9, None, [], id="the next"),
    pytest.param(1000, None, [], id="far ahead"),
    pytest.param(None, 3, [4, 5, 6], id="the first three"),
    pytest.param(2, 3, [4, 5, 6], id="three before what is kept"),
    pytest.param(6, 2, [6, 7], id="two in between"),
    pytest.param(7, 100, [7, 8], id="more than there are"),
    pytest.param(None, 10**30, [4, 5, 6, 7, 8], id="a huge number"),
    pytest.param(None, 0, [], id="none"),
    pytest.param(5, 0, [], id="none from an offset on"),
]
REVERSE = [
    pytest.param(None, None, [8, 7, 6, 5, 4], id="all"),
    pytest.param(None, 2, [8, 7], id="the newest two"),
    pytest.param(6, None, [6, 5, 4], id="from an offset"),
    pytest.param(6, 2, [6, 5], id="two from an offset"),
    pytest.param(4, 3, [4], id="the oldest"),
    pytest.param(3, None, [], id="before what is kept"),
    pytest.param(0, None, [], id="before the first"),
    pytest.param(-(10**30), None, [], id="far before the first"),
    pytest.param(100, 1, [8], id="beyond the top"),
    pytest.param(2**64, 1, [8], id="beyond every offset"),
    pytest.param(None, 10**30, [8, 7, 6, 5, 4], id="a huge number"),
    pytest.param(None, 0, [], id="none"),
]


async def read(
    engine: Bench, channel: str, start: int | None, limit: int | None, *, reverse: bool = False
) -> list[int]:
    """Return the offsets of a part of eight publications, of which five are kept."""
    position = await engine.publish(channel, *range(1, 9))
    history = await engine.broker.history(channel, start, limit, reverse=reverse)
    offsets = [publication.offset for publication in history.publications]
    assert [int(publication.data.raw) for publication in history.publications] == offsets
    assert (history.position, history.top_uid) == (position, "u8")
    return offsets


@pytest.mark.parametrize(("start", "limit", "offsets"), FORWARD)
async def test_history_is_read_from_an_offset_on_and_up_to_a_number(
    engine: Bench, unique: str, start: int | None, limit: int | None, offsets: list[int]
) -> None:
    assert await read(engine, unique, start, limit) == offsets


@pytest.mark.parametrize(("start", "limit", "offsets"), REVERSE)
async def test_history_is_read_in_reverse(
    engine: Bench, unique: str, start: int | None, limit: int | None, offsets: list[int]
) -> None:
    assert await read(engine, unique, start, limit, reverse=True) == offsets


@pytest.mark.parametrize("published", [0, 3])
@pytest.mark.parametrize(
    "since",
    [2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30],
    ids=lambda since: f"{since:#x}",
)
async def test_history_may_be_read_from_any_offset_on(
    engine: Bench, unique: str, since: int, published: int
) -> None:
    await engine.publish(unique, *range(published))
    history = await engine.broker.history(unique, since)
    assert history.publications == ()
    assert history.position.offset == published


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


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]], ids=["unused", "one", "three"])
async def test_epoch_stays_the_same_without_a_reason(
    engine: Bench, unique: str, values: list[int]
) -> None:
    await engine.publish(unique, *values)

    positions = [await position_of(engine.broker, unique) for _ in range(3)]
    await engine.broker.remove_history(unique)
    await engine.publish(f"{unique}-other", 1)
    positions.append(await position_of(engine.broker, unique))

    assert len({position.epoch for position in positions}) == 1
    assert {position.offset for position in positions} == {len(values)}
