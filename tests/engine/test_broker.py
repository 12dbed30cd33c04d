"""The contract of `engine.base.Broker`, for every engine: delivery and streams."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from realtime.config.options import ChannelOptions
from realtime.protocol.messages import StreamPosition
from tests.engine.bench import CHECKED, META_LIFETIME, OWN_LIFETIMES, Bench, untimed
from tests.unit.parts import position_of, turns

# delivery


async def test_publication_with_history_is_numbered_from_1(engine: Bench, unique: str) -> None:
    await engine.broker.subscribe(unique)

    positions = [await engine.publish(unique, value) for value in (1, 2, 3)]

    epoch = (await position_of(engine.broker, unique)).epoch
    assert positions == [StreamPosition(offset, epoch) for offset in (1, 2, 3)]
    assert [p.offset for p in await engine.received(unique, 3)] == [1, 2, 3]
    assert [position for _, position in engine.receiver.publications[unique]] == positions


async def test_nothing_is_delivered_for_other_channels_and_after_unsubscribing(
    engine: Bench, unique: str
) -> None:
    await engine.broker.subscribe(unique)
    await engine.broker.subscribe(f"{unique}-after")
    await engine.publish(f"{unique}-other", 1)
    await engine.publish(unique, 2)
    await engine.received(unique, 1)

    await engine.broker.unsubscribe(unique)
    await engine.publish(unique, 3)
    await engine.publish(f"{unique}-after", 4)

    await engine.received(f"{unique}-after", 1)
    assert engine.values(unique) == [2]
    assert engine.values(f"{unique}-other") == []


async def test_nothing_is_delivered_or_reported_after_the_end(engine: Bench, unique: str) -> None:
    await engine.broker.subscribe(unique)

    await engine.engine.stop()
    with contextlib.suppress(Exception):  # a stopped engine may refuse
        await engine.publish(unique, 1)
    with contextlib.suppress(Exception):
        await engine.broker.unsubscribe(unique)
    await turns()

    assert engine.receiver.publications[unique] == []
    assert engine.receiver.vacated == []


async def test_any_name_is_a_channel_of_its_own(engine: Bench, unique: str) -> None:
    for name in ("*", "a b", "$p#17,18", ":::", "a/b&c", "x" * 255, "\x00"):
        channel = f"{unique}{name}"
        await engine.broker.subscribe(channel)

        await engine.publish(channel, 1)

        assert len(await engine.received(channel, 1)) == 1
        assert await engine.kept(channel) == [1]
        assert await engine.kept(unique) == []


async def test_concurrent_publications_are_numbered_and_delivered_in_the_same_order(
    engine: Bench, unique: str
) -> None:
    options = ChannelOptions(history_size=100, history_lifetime=100)
    await engine.broker.subscribe(unique)

    positions = await asyncio.gather(
        *(engine.publish(unique, value, options=options) for value in range(50))
    )

    received = await engine.received(unique, 50)
    assert sorted(position.offset for position in positions if position) == [*range(1, 51)]
    assert [publication.offset for publication in received] == [*range(1, 51)]
    assert untimed((await engine.broker.history(unique)).publications) == untimed(received)


async def test_reading_history_between_publications_never_misses_one(
    engine: Bench, unique: str
) -> None:
    options = ChannelOptions(history_size=1000, history_lifetime=100)

    async def publish() -> None:
        for value in range(50):
            position = await engine.publish(unique, value, options=options)
            assert position is not None
            # a caller that reads afterwards finds it there
            history = await engine.broker.history(unique)
            assert history.position.offset >= position.offset
            assert history.publications[position.offset - 1].offset == position.offset
            await asyncio.sleep(0)

    async def read() -> None:
        for _ in range(50):
            history = await engine.broker.history(unique)
            offsets = [publication.offset for publication in history.publications]
            assert offsets == [*range(1, history.position.offset + 1)]
            await asyncio.sleep(0)

    await asyncio.gather(publish(), publish(), read(), read())


# streams


async def test_history_is_trimmed_to_its_size_and_oldest_first(engine: Bench, unique: str) -> None:
    await engine.publish(unique, *range(8))

    assert await engine.kept(unique) == [4, 5, 6, 7, 8]
    assert await engine.kept_values(unique) == [3, 4, 5, 6, 7]
    assert (await position_of(engine.broker, unique)).offset == 8
    await engine.publish(unique, 9, options=ChannelOptions(history_size=2, history_lifetime=100))
    assert await engine.kept(unique) == [8, 9]


async def test_history_expires_and_the_position_outlives_it(engine: Bench, unique: str) -> None:
    await engine.publish(unique, 1)
    await engine.elapse(90)
    position = await engine.publish(unique, 2)  # the lifetime of both begins

    await engine.elapse(90)
    assert await engine.kept(unique) == [1, 2]
    await engine.elapse(11)

    history = await engine.broker.history(unique)
    assert (history.publications, history.position) == ((), position)


async def test_removed_history_leaves_the_position_and_numbers_go_on(
    engine: Bench, unique: str
) -> None:
    await engine.broker.remove_history(unique)
    position = await engine.publish(unique, 1, 2)

    await engine.broker.remove_history(unique)

    for start in (None, 2):
        history = await engine.broker.history(unique, start)
        assert (history.publications, history.position) == ((), position)
    await engine.publish(unique, 3)
    assert await engine.kept(unique) == [3]


async def test_position_before_the_first_publication_is_0_in_the_epoch_it_will_have(
    engine: Bench, unique: str
) -> None:
    before = (await engine.broker.history(unique)).position
    assert await position_of(engine.broker, unique) == before

    after = await engine.publish(unique, 1)

    assert before.offset == 0
    assert before.epoch
    assert after == StreamPosition(1, before.epoch)


async def test_position_is_the_one_history_has_and_is_kept_forever_without_a_bound(
    engine: Bench, unique: str
) -> None:
    published = await engine.publish(unique, 1, 2, 3)
    for _ in range(3):
        assert (await engine.broker.history(unique)).position == published
        assert await position_of(engine.broker, unique) == published
        await engine.elapse(10_000)


async def test_forgotten_position_begins_again_in_another_epoch(
    forgetful: Bench, unique: str
) -> None:
    published = await forgetful.publish(unique, 1)

    await forgetful.elapse(META_LIFETIME * 1.01 + 1)  # Redis keeps it one hundredth longer

    assert published is not None
    assert (await position_of(forgetful.broker, unique)).offset == 0
    again = await forgetful.publish(unique, 2)
    assert again is not None
    assert again.offset == 1
    assert again.epoch != published.epoch


@pytest.mark.parametrize("use", ["publish", "history", "position"])
async def test_every_use_keeps_the_position_longer(forgetful: Bench, unique: str, use: str) -> None:
    published = await forgetful.publish(unique, 1)
    assert published is not None
    await forgetful.elapse(META_LIFETIME - 10)
    match use:
        case "publish":
            await forgetful.publish(unique, 2)
        case "history":
            await forgetful.broker.history(unique)
        case "position":
            await position_of(forgetful.broker, unique)

    await forgetful.elapse(META_LIFETIME - 10)

    position = await position_of(forgetful.broker, unique)
    assert position.offset == (2 if use == "publish" else 1)
    assert position.epoch == published.epoch


async def test_position_is_kept_twice_as_long_as_the_publications(
    forgetful: Bench, unique: str
) -> None:
    options = ChannelOptions(history_size=5, history_lifetime=2 * META_LIFETIME)
    published = await forgetful.publish(unique, 1, options=options)

    await forgetful.elapse(1.5 * META_LIFETIME)
    history = await forgetful.broker.history(unique)
    assert [each.offset for each in history.publications] == [1]
    await forgetful.elapse(2 * META_LIFETIME)
    assert await position_of(forgetful.broker, unique) == published


async def test_position_is_kept_as_long_as_the_option_of_its_channel_says(
    choosy: Bench, unique: str
) -> None:
    names = [f"{kind}:{unique}" for kind in ("short", "plain", "long")]

    async def offsets() -> list[int]:
        return [position.offset for position in await choosy.broker.positions(names)]

    for name in names:
        own = OWN_LIFETIMES.get(name.partition(":")[0], 0)
        options = ChannelOptions(history_size=5, history_lifetime=100, history_meta_ttl=own)
        await choosy.publish(name, 1, options=options)
        await choosy.broker.history(name)
    assert await offsets() == [1, 1, 1]

    await choosy.elapse(310)
    assert (await choosy.broker.history(names[0])).position.offset == 0
    assert await offsets() == [0, 1, 1]
    await choosy.elapse(META_LIFETIME * 1.01 + 1)
    assert await offsets() == [0, 0, 1]


@pytest.mark.parametrize("own", [0, 70])
async def test_position_of_a_channel_with_subscribers_outlives_the_time_between_checks(
    slow: Bench, unique: str, own: int
) -> None:
    options = ChannelOptions(history_size=5, history_lifetime=10, history_meta_ttl=own)
    await slow.broker.subscribe(unique)
    published = await slow.publish(unique, 1, options=options)
    for _ in range(2):
        await slow.elapse(CHECKED - 5)
        assert await position_of(slow.broker, unique) == published
    await slow.broker.unsubscribe(unique)
