"""Followers of an engine that lost the stream."""

from __future__ import annotations

import asyncio

import pytest

from realtime.streams.retries import MAX_DELAY
from tests.unit.parts import Clock, eventually, position_of, turns
from tests.unit.streams.follower_parts import Line, open_line, resume


async def test_stream_that_begins_anew_is_lost_once_and_followed(line: Line) -> None:
    await line.publish(1, 2)
    epoch = line.position.epoch
    line.follower.interrupt()
    line.engine.lose_everything()
    await line.lose(3)
    await resume(line)
    await line.publish(4)
    assert (line.delivered, line.losses) == ([1, 2, 4], 1)
    assert line.position == await position_of(line.engine.broker, "a")
    assert line.position.epoch != epoch
    assert line.engine.calls["renew_epoch"] == 0  # it has a new one already


async def test_gap_that_is_not_kept_any_more_is_a_loss_and_the_stream_is_followed(
    line: Line,
) -> None:
    await line.publish(1)
    await line.lose(2)
    await line.engine.broker.remove_history("a")
    await line.publish(3)
    await eventually(lambda: line.losses == 1)
    await eventually(lambda: line.position.offset == 3)
    await line.publish(4)
    assert (line.delivered, line.losses) == ([1, 4], 1)
    assert line.engine.calls["renew_epoch"] == 0  # every position in it is still what it was


async def test_stream_that_lost_its_end_gets_a_new_epoch_and_is_followed(line: Line) -> None:
    await line.publish(1, 2, 3)
    epoch = line.position.epoch
    line.follower.interrupt()
    line.engine.broker.lose_tail("a", 1)
    await resume(line)
    await line.publish(4)
    assert (line.delivered, line.losses) == ([1, 2, 3, 4], 1)
    assert line.engine.calls["renew_epoch"] == 1
    assert line.position == await position_of(line.engine.broker, "a")
    assert line.position.epoch != epoch


async def test_stream_that_lost_its_end_and_went_on_is_noticed_by_the_id_of_the_last_one(
    line: Line,
) -> None:
    await line.publish(1, 2, 3)
    epoch = line.position.epoch
    line.follower.interrupt()
    line.engine.broker.lose_tail("a", 2)
    await line.lose(4, 5, 6)
    await resume(line)
    await line.publish(7)
    assert (line.delivered, line.losses) == ([1, 2, 3, 7], 1)
    assert line.engine.calls["renew_epoch"] == 1
    assert line.position.epoch != epoch


async def test_stream_that_lost_its_end_is_noticed_where_nothing_was_delivered(
    clock: Clock,
) -> None:
    """The follower knows the last publication from the position that it began with."""
    line = await open_line()
    await line.publish(1, 2, 3)
    await line.follower.start()
    epoch = line.position.epoch
    line.follower.interrupt()
    line.engine.broker.lose_tail("a", 2)
    await line.lose(4, 5, 6)
    await resume(line)
    assert (line.delivered, line.losses) == ([], 1)
    assert line.position.epoch != epoch


@pytest.mark.parametrize("others", [[3], []], ids=["another at the top", "a lower top"])
async def test_stream_that_lost_its_end_is_noticed_by_a_check(
    line: Line, others: list[int]
) -> None:
    await line.publish(1, 2)
    line.engine.broker.lose_tail("a", 1)
    for value in others:
        await line.lose(value)
    await line.follower.check()
    assert (line.losses, line.engine.calls["renew_epoch"]) == (1, 1)


async def test_publication_that_waited_when_the_stream_was_lost_is_a_loss_only_once(
    line: Line,
) -> None:
    await line.publish(1)
    line.engine.hold("history")
    await line.lose(2)
    await line.publish(3)
    await line.engine.reached("history")
    line.engine.broker.lose_tail("a", 2)

    line.engine.go_on("history")
    await eventually(lambda: line.losses > 0)
    await turns(50)
    assert (line.losses, line.engine.calls["renew_epoch"]) == (1, 1)
    await line.publish(4)

    assert line.delivered == [1, 4]


async def test_publication_after_a_loss_and_before_the_new_position_is_delivered_once(
    line: Line,
) -> None:
    await line.publish(1)
    line.follower.interrupt()
    line.engine.lose_everything()
    line.engine.hold_answer("position")
    resuming = asyncio.create_task(resume(line))
    await line.engine.reached("position")
    await line.publish(2)
    line.engine.go_on("position")
    await resuming
    await line.publish(3)
    assert (line.delivered, line.losses) == ([1, 2, 3], 1)


@pytest.mark.parametrize("step", ["renew_epoch", "position"])
async def test_loss_is_reported_when_the_engine_answers_again(
    line: Line, clock: Clock, step: str
) -> None:
    await line.publish(1, 2)
    line.engine.failing.add(step)
    line.follower.interrupt()
    line.engine.broker.lose_tail("a", 1)
    resuming = asyncio.create_task(resume(line))
    await clock.advance(10)
    assert (line.losses, resuming.done()) == (0, False)

    line.engine.failing.clear()
    await clock.advance(MAX_DELAY)
    await resuming
    await line.publish(3)

    assert (line.delivered, line.losses) == ([1, 2, 3], 1)


async def test_loss_that_a_gap_showed_is_reported_when_the_engine_answers_again(
    line: Line, clock: Clock
) -> None:
    await line.publish(1)
    line.engine.failing.add("position")
    await line.lose(2)
    await line.engine.broker.remove_history("a")
    await line.publish(3)
    await line.engine.broker.remove_history("a")
    await clock.advance(10)
    assert line.losses == 0

    line.engine.failing.clear()
    await clock.advance(MAX_DELAY)
    await eventually(lambda: line.losses == 1)
    await eventually(lambda: line.position.offset == 3)
    await line.publish(4)

    assert line.delivered == [1, 4]
