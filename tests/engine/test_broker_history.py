"""The contract of `engine.base.Broker`, for every engine: parts of streams, epochs."""

from __future__ import annotations

import asyncio

import pytest

from realtime.config.options import ChannelOptions
from realtime.protocol.messages import StreamPosition
from tests.engine.bench import Bench

# history from an offset on


@pytest.mark.parametrize(
    ("since", "offsets"),
    [
        pytest.param(0, [4, 5, 6, 7, 8], id="the beginning"),
        pytest.param(2, [4, 5, 6, 7, 8], id="before what is kept"),
        pytest.param(4, [4, 5, 6, 7, 8], id="the first kept"),
        pytest.param(6, [6, 7, 8], id="in between"),
        pytest.param(8, [8], id="the last"),
        pytest.param(9, [], id="the next"),
        pytest.param(1000, [], id="far ahead"),
    ],
)
async def test_history_is_read_from_an_offset_on(
    engine: Bench, unique: str, since: int, offsets: list[int]
) -> None:
    position = await engine.publish(unique, *range(1, 9))

    history = await engine.broker.history(unique, since)

    assert [publication.offset for publication in history.publications] == offsets
    assert [int(publication.data.raw) for publication in history.publications] == offsets
    assert history.position == position


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


async def test_history_from_an_offset_on_has_the_position_when_nothing_is_kept(
    engine: Bench, unique: str
) -> None:
    position = await engine.publish(unique, 1, 2, 3)
    await engine.broker.remove_history(unique)

    history = await engine.broker.history(unique, 2)

    assert (history.publications, history.position) == ((), position)


async def test_offsets_beyond_ten_are_in_the_order_of_numbers(engine: Bench, unique: str) -> None:
    options = ChannelOptions(history_size=200, history_lifetime=100)
    await engine.publish(unique, *range(120), options=options)

    history = await engine.broker.history(unique, 9)

    assert [publication.offset for publication in history.publications] == [*range(9, 121)]


# epochs


async def test_renewed_epoch_is_another_one_and_is_kept(engine: Bench, unique: str) -> None:
    before = await engine.publish(unique, 1, 2)
    assert before is not None

    await engine.broker.renew_epoch(unique, before.epoch)

    position = await engine.broker.position(unique)
    assert position.epoch != before.epoch
    assert (await engine.broker.history(unique)).position == position
    after = await engine.publish(unique, 3)
    assert after == StreamPosition(position.offset + 1, position.epoch)


async def test_epoch_is_renewed_once_however_often_the_loss_is_noticed(
    engine: Bench, unique: str
) -> None:
    before = await engine.publish(unique, 1)
    assert before is not None
    await engine.broker.renew_epoch(unique, before.epoch)
    renewed = await engine.broker.position(unique)

    await asyncio.gather(*(engine.broker.renew_epoch(unique, before.epoch) for _ in range(5)))

    assert await engine.broker.position(unique) == renewed


async def test_epoch_that_was_not_lost_is_not_renewed(engine: Bench, unique: str) -> None:
    position = await engine.publish(unique, 1)

    await engine.broker.renew_epoch(unique, "another")

    assert await engine.broker.position(unique) == position


async def test_renewing_an_epoch_changes_no_other_stream(engine: Bench, unique: str) -> None:
    lost = await engine.publish(f"{unique}-lost", 1)
    other = await engine.publish(f"{unique}-other", 1)
    assert lost is not None

    await engine.broker.renew_epoch(f"{unique}-lost", lost.epoch)

    assert await engine.broker.position(f"{unique}-other") == other


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]], ids=["unused", "one", "three"])
async def test_epoch_stays_the_same_without_a_reason(
    engine: Bench, unique: str, values: list[int]
) -> None:
    await engine.publish(unique, *values)

    positions = [await engine.broker.position(unique) for _ in range(3)]
    await engine.broker.remove_history(unique)
    await engine.publish(f"{unique}-other", 1)
    positions.append(await engine.broker.position(unique))

    assert len({position.epoch for position in positions}) == 1
    assert {position.offset for position in positions} == {len(values)}
