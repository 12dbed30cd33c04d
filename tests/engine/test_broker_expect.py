"""The contract of `engine.base.Broker`, for every engine: publishing at an expected top."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing, Published
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.protocol.messages import Publication, StreamPosition
from tests.engine.bench import KEPT, Bench
from tests.unit.parts import data, position_of

WRITERS, STEPS = 50, 4
LONG = ChannelOptions(history_size=WRITERS * STEPS, history_lifetime=100)


def outgoing(
    channel: str,
    value: int,
    expect: StreamPosition | int | None,
    once: Once | None = None,
    version: Version | None = None,
    options: ChannelOptions = KEPT,
) -> Outgoing:
    publication = Publication(data(str(value)), uid=f"u{value}")
    return Outgoing(channel, publication, options, once, version, expect)


@pytest.mark.parametrize("named", [False, True], ids=["offset", "offset and epoch"])
async def test_only_what_expects_the_top_is_published(
    engine: Bench, unique: str, named: bool
) -> None:
    await engine.broker.subscribe(unique)
    epoch = (await position_of(engine.broker, unique)).epoch

    async def publish(value: int, offset: int) -> Published:
        expect = StreamPosition(offset, epoch) if named else offset
        return await engine.broker.publish(outgoing(unique, value, expect))

    def at(offset: int, *, kept: bool = True) -> Published:
        return Published(StreamPosition(offset, epoch), kept)

    assert await publish(1, 1) == at(0, kept=False)
    assert await publish(2, 0) == at(1)
    assert await publish(3, 0) == at(1, kept=False)
    assert await publish(4, 2) == at(1, kept=False)
    assert await publish(5, 1) == at(2)
    await engine.broker.remove_history(unique)
    assert await publish(6, 0) == at(2, kept=False)
    assert await publish(7, 2) == at(3)

    assert await engine.kept_values(unique) == [7]
    received = await engine.received(unique, 3)
    assert [(p.offset, int(p.data.raw)) for p in received] == [(1, 2), (2, 5), (3, 7)]


async def test_a_top_of_another_epoch_is_not_expected(engine: Bench, unique: str) -> None:
    never = await engine.broker.publish(outgoing(unique, 1, StreamPosition(0, "other")))
    first = await engine.broker.publish(outgoing(unique, 2, never.position))
    other = await engine.broker.publish(outgoing(unique, 3, StreamPosition(1, "other")))

    assert never.position is not None
    assert first == Published(StreamPosition(1, never.position.epoch))
    assert other == Published(first.position, kept=False)
    await engine.broker.renew_epoch(unique, never.position.epoch)
    renewed = await engine.broker.publish(outgoing(unique, 4, first.position))
    assert renewed == Published(await position_of(engine.broker, unique), kept=False)
    assert (await engine.broker.publish(outgoing(unique, 5, renewed.position))).kept
    assert await engine.kept_values(unique) == [2, 5]


async def test_top_of_an_unused_channel_that_is_forgotten_stays_true(
    forgetful: Bench, unique: str
) -> None:
    """What a refusal says of a channel without publications can be expected."""
    refused = await forgetful.broker.publish(outgoing(unique, 1, 7))
    assert refused == Published(await position_of(forgetful.broker, unique), kept=False)
    assert (await forgetful.broker.publish(outgoing(unique, 1, refused.position))).kept


async def test_a_key_is_asked_before_the_top_and_the_top_before_the_version(
    engine: Bench, unique: str
) -> None:
    async def publish(
        value: int, expect: int, once: Once | None, version: Version
    ) -> tuple[int, bool]:
        published = await engine.broker.publish(outgoing(unique, value, expect, once, version))
        assert published.position is not None
        return published.position.offset, published.kept

    assert await publish(1, 0, Once("a"), Version(5)) == (1, True)
    assert await publish(2, 1, None, Version(6)) == (2, True)
    # a repetition has its first answer, whatever is the top
    assert await publish(3, 2, Once("a"), Version(9)) == (1, False)
    # what is refused uses no key and leaves no version
    assert await publish(4, 0, Once("b"), Version(9)) == (2, False)
    assert await publish(5, 2, Once("b"), Version(6)) == (2, False)
    assert await publish(6, 2, Once("b"), Version(7)) == (3, True)
    assert await engine.kept_values(unique) == [1, 2, 6]


async def test_several_at_once_are_compared_one_after_another(engine: Bench, unique: str) -> None:
    expected = [(1, 0), (2, 0), (3, 1), (4, 7), (5, 2)]
    outcomes = await engine.broker.publish_many([outgoing(unique, *each) for each in expected])

    published = [each for each in outcomes if isinstance(each, Published)]
    assert [each.kept for each in published] == [True, False, True, False, True]
    assert [each.position and each.position.offset for each in published] == [1, 1, 2, 2, 3]
    assert await engine.kept_values(unique) == [1, 3, 5]


async def test_writers_that_expect_the_top_lose_no_step(engine: Bench, unique: str) -> None:
    """Each writer appends to what it read, and reads again where another was first."""
    await engine.broker.subscribe(unique)

    async def write(writer: int) -> list[StreamPosition | None]:
        top: StreamPosition | None = await position_of(engine.broker, unique)
        made: list[StreamPosition | None] = []
        while len(made) < STEPS:
            value = writer * STEPS + len(made)
            published = await engine.broker.publish(outgoing(unique, value, top, options=LONG))
            top = published.position
            if published.kept:
                made.append(top)
        return made

    written = await asyncio.gather(*(write(writer) for writer in range(WRITERS)))

    kept = (await engine.broker.history(unique)).publications
    assert [p.offset for p in kept] == [*range(1, WRITERS * STEPS + 1)]
    place = {int(p.data.raw): p.offset for p in kept}
    assert [place[value] for value in range(WRITERS * STEPS)] == [
        position.offset for made in written for position in made if position
    ]
    received = await engine.received(unique, WRITERS * STEPS)
    assert [p.offset for p in sorted(received, key=lambda p: p.offset)] == [p.offset for p in kept]
