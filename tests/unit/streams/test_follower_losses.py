"""Followers of an engine that is interrupted, or that lost the stream."""

from __future__ import annotations

import asyncio

import pytest

from realtime.streams.retries import MAX_DELAY
from tests.unit.parts import Clock, eventually, turns
from tests.unit.streams.follower_parts import Line, open_line


@pytest.fixture
async def line(clock: Clock) -> Line:
    """A line on which a stream is followed, in the test's time."""
    line = await open_line()
    await line.follower.start()
    return line


async def resume(line: Line) -> None:
    await line.follower.resume(line.follower.interruptions)


# interruptions


async def test_what_arrives_during_an_interruption_waits_and_nothing_is_read(line: Line) -> None:
    line.follower.interrupt()

    await line.publish(1, 2)
    await line.lose(3)
    await line.publish(4)
    await turns(20)

    assert line.delivered == []
    assert line.engine.calls["history"] == 0


async def test_resume_returns_when_everything_that_was_missed_is_delivered(line: Line) -> None:
    await line.publish(1)
    line.follower.interrupt()
    await line.publish(2)
    await line.lose(3, 4)

    await resume(line)

    assert line.delivered == [1, 2, 3, 4]
    assert line.engine.calls["history"] == 1
    await line.publish(5)
    assert line.delivered == [1, 2, 3, 4, 5]


async def test_interruption_without_a_loss_closes_no_subscriber(line: Line) -> None:
    await line.publish(1)
    line.follower.interrupt()

    await resume(line)
    await line.publish(2)

    assert (line.delivered, line.losses) == ([1, 2], 0)


async def test_resume_of_an_older_interruption_is_ignored(line: Line) -> None:
    line.follower.interrupt()
    older = line.follower.interruptions
    line.follower.interrupt()
    await line.lose(1)

    await line.follower.resume(older)
    await turns(20)

    assert (line.delivered, line.engine.calls["history"]) == ([], 0)
    await resume(line)
    assert line.delivered == [1]


async def test_follower_that_began_during_an_interruption_catches_up_at_its_end(
    line: Line,
) -> None:
    """A connection that is being restored may be lost again without a second event."""
    await line.lose(1)

    await resume(line)

    assert line.delivered == [1]


async def test_gap_before_an_interruption_is_filled_after_it(line: Line) -> None:
    line.engine.hold("history")
    await line.lose(1)
    await line.publish(2)
    await line.engine.reached("history")
    line.follower.interrupt()
    await line.lose(3)

    line.engine.go_on("history")
    await eventually(lambda: line.delivered == [1, 2, 3])  # this much was read
    await line.lose(4)
    await turns(20)
    assert line.delivered == [1, 2, 3]
    await resume(line)

    assert line.delivered == [1, 2, 3, 4]


async def test_interruption_while_the_stream_is_read_makes_another_read_necessary(
    line: Line,
) -> None:
    line.follower.interrupt()
    line.engine.hold_answer("history")
    resuming = asyncio.create_task(resume(line))
    await line.engine.reached("history")
    line.follower.interrupt()
    await line.lose(1)

    line.engine.go_on("history")
    await turns(20)
    assert line.delivered == []
    assert not resuming.done()
    await resume(line)
    await resuming

    assert line.delivered == [1]


async def test_resume_waits_while_the_engine_fails(line: Line, clock: Clock) -> None:
    line.follower.interrupt()
    await line.lose(1)
    line.engine.failing.add("history")
    resuming = asyncio.create_task(resume(line))
    await clock.advance(10)
    assert not resuming.done()

    line.engine.failing.clear()
    await clock.advance(MAX_DELAY)
    await resuming

    assert line.delivered == [1]


async def test_reach_during_an_interruption_waits_for_its_end(line: Line) -> None:
    line.follower.interrupt()
    await line.lose(1)
    reaching = asyncio.create_task(line.follower.reach(None))
    await turns(20)
    assert not reaching.done()

    await resume(line)
    await reaching

    assert line.delivered == [1]


async def test_interruption_during_the_start_is_caught_up_with(clock: Clock) -> None:
    line = await open_line()
    line.engine.hold_answer("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")

    line.follower.interrupt()
    await line.lose(1)
    line.engine.go_on("position")
    await starting
    await resume(line)

    assert line.delivered == [1]


async def test_resume_before_the_position_is_known_is_caught_up_with_by_the_start(
    clock: Clock,
) -> None:
    line = await open_line()
    line.engine.hold_answer("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")

    line.follower.interrupt()
    await line.lose(1)
    async with asyncio.timeout_at(clock.now + 1):
        resuming = asyncio.create_task(resume(line))
        await turns(20)
        line.engine.go_on("position")
        await starting
        await resuming
    await eventually(lambda: line.delivered == [1])
    await line.publish(2)

    assert line.delivered == [1, 2]


async def test_resume_of_a_stopped_follower_is_ignored(line: Line) -> None:
    line.follower.interrupt()
    line.follower.stop()

    await resume(line)

    assert line.engine.calls["history"] == 0


async def test_stopped_follower_reads_nothing(line: Line) -> None:
    await line.publish(1)
    line.follower.stop()
    await line.publish(2)

    await line.follower.reach(None)
    await line.follower.check()

    assert (line.engine.calls["history"], line.engine.calls["position"]) == (0, 1)


async def test_callers_do_not_wait_for_a_stopped_follower(line: Line) -> None:
    line.follower.interrupt()
    await line.lose(1)
    line.engine.hold("history")
    reaching = asyncio.create_task(line.follower.reach(None))
    await turns()
    resuming = asyncio.create_task(resume(line))
    await line.engine.reached("history")

    line.follower.stop()
    await eventually(lambda: reaching.done() and resuming.done())

    assert line.delivered == []


# streams that do not continue


async def test_stream_that_begins_anew_is_lost_once_and_followed(line: Line) -> None:
    await line.publish(1, 2)
    epoch = line.position.epoch
    line.follower.interrupt()
    line.engine.lose_everything()
    await line.lose(3)

    await resume(line)
    await line.publish(4)

    assert (line.delivered, line.losses) == ([1, 2, 4], 1)
    assert line.position == await line.engine.broker.position("a")
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
    assert line.position == await line.engine.broker.position("a")
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


async def test_other_publication_at_the_top_is_noticed_by_a_check(line: Line) -> None:
    await line.publish(1, 2)
    line.engine.broker.lose_tail("a", 1)
    await line.lose(3)

    await line.follower.check()

    assert (line.losses, line.engine.calls["renew_epoch"]) == (1, 1)


async def test_stream_that_lost_its_end_is_noticed_by_a_check(line: Line) -> None:
    await line.publish(1, 2)
    line.engine.broker.lose_tail("a", 1)

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
