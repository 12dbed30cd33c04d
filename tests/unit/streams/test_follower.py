"""Followers: the stream is read whenever something is missing, or may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from realtime.protocol.messages import StreamPosition
from realtime.streams.retries import MAX_DELAY, MIN_DELAY
from tests.unit.parts import Clock, eventually, position_of, turns
from tests.unit.streams.follower_parts import Line, open_line


@pytest.fixture
async def line(clock: Clock) -> Line:
    """A line whose follower is not started, in the test's time."""
    return await open_line()


# starting


async def test_publications_are_delivered_as_they_arrive(line: Line) -> None:
    await line.follower.start()
    await line.publish(1, 2, 3)
    assert line.delivered == [1, 2, 3]
    assert line.follower.position == await position_of(line.engine.broker, "a")


async def test_stream_is_followed_from_where_it_is_at_the_start(line: Line) -> None:
    await line.lose(1, 2)
    await line.follower.start()
    await line.publish(3)
    assert line.delivered == [3]


async def test_position_is_unknown_until_the_start_is_through(line: Line) -> None:
    line.engine.hold("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")
    assert line.follower.position is None
    line.engine.go_on("position")
    await starting
    assert line.follower.position == await position_of(line.engine.broker, "a")


async def test_publication_that_arrives_before_the_position_was_read_is_in_the_position(
    line: Line,
) -> None:
    line.engine.hold("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")
    await line.publish(1)
    line.engine.go_on("position")
    await starting
    assert line.delivered == []
    assert (await position_of(line.engine.broker, "a")).offset == 1
    assert line.follower.position == await position_of(line.engine.broker, "a")


async def test_publication_that_arrives_after_the_position_was_read_is_delivered(
    line: Line,
) -> None:
    line.engine.hold_answer("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")
    await line.publish(1)
    assert line.delivered == []
    line.engine.go_on("position")
    await starting
    assert line.delivered == [1]


async def test_start_fails_with_the_engine(line: Line) -> None:
    line.engine.failing.add("position")
    with pytest.raises(ConnectionError):
        await line.follower.start()


# gaps


async def test_nothing_is_read_where_nothing_is_missing(line: Line) -> None:
    await line.follower.start()
    await line.publish(1, 2)
    await turns(20)
    assert line.engine.calls["history"] == 0


async def test_many_gaps_are_filled_with_one_read(line: Line) -> None:
    await line.follower.start()
    line.engine.hold("history")
    for value in range(0, 20, 2):
        await line.lose(value)
        await line.publish(value + 1)
    await turns(20)
    assert line.delivered == []
    line.engine.go_on("history")
    await eventually(lambda: len(line.delivered) == 20)
    assert line.delivered == list(range(20))
    assert line.engine.calls["history"] == 1


async def test_gap_that_began_while_the_answer_was_on_its_way_is_filled_with_another_read(
    line: Line,
) -> None:
    await line.follower.start()
    line.engine.hold_answer("history")
    await line.lose(1)
    await line.publish(2)
    await line.engine.reached("history")
    await line.publish(3)
    await line.lose(4)
    await line.publish(5)

    line.engine.go_on("history")
    await eventually(lambda: len(line.delivered) == 5)

    assert line.delivered == [1, 2, 3, 4, 5]
    assert line.engine.calls["history"] == 2


async def test_gap_is_filled_with_a_read_from_the_last_one_that_was_delivered(line: Line) -> None:
    await line.follower.start()
    await line.publish(*range(10))
    await line.lose(10)
    await line.publish(11)
    await eventually(lambda: line.delivered == list(range(12)))
    assert line.engine.broker.read_from == [10]
    assert line.losses == 0


# an engine that fails


async def test_gap_is_filled_when_the_engine_answers_again(line: Line, clock: Clock) -> None:
    await line.follower.start()
    line.engine.failing.add("history")
    await line.lose(1)
    await line.publish(2)
    await clock.advance(10)
    assert line.delivered == []
    line.engine.failing.clear()
    await clock.advance(MAX_DELAY)
    await eventually(lambda: line.delivered == [1, 2])
    assert line.losses == 0


async def test_engine_that_fails_is_asked_again_soon_and_then_less_often(
    line: Line, clock: Clock
) -> None:
    await line.follower.start()
    line.engine.failing.add("history")
    await line.lose(1)
    await line.publish(2)

    async def asked_within(seconds: float) -> int:
        before = line.engine.calls["history"]
        for _ in range(round(seconds / (MIN_DELAY / 2))):
            await clock.advance(MIN_DELAY / 2)
        return line.engine.calls["history"] - before

    assert await asked_within(2 * MIN_DELAY) >= 1
    await asked_within(10 * MAX_DELAY)
    # waits are between half and the whole of the longest delay, and a step to notice
    later = await asked_within(20 * MAX_DELAY)
    assert 18 <= later <= 41


async def test_failure_is_logged_with_the_channel(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    await line.follower.start()
    line.engine.failing.add("history")
    await line.lose(1)
    await line.publish(2)
    await eventually(lambda: bool(caplog.records))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "'a'" in record.getMessage()
    assert "cannot be reached" in record.getMessage()


# reach and check


async def test_reach_of_what_was_delivered_asks_nothing(line: Line) -> None:
    await line.follower.start()
    await line.publish(1)
    epoch = line.position.epoch
    for offset in (0, 1):
        await line.follower.reach(StreamPosition(offset, epoch))
    assert line.engine.calls["history"] == 0


async def test_reach_returns_when_everything_up_to_the_position_was_delivered(line: Line) -> None:
    await line.follower.start()
    await line.lose(1, 2)
    await line.follower.reach(await position_of(line.engine.broker, "a"))
    assert line.delivered == [1, 2]


async def test_reach_waits_while_the_engine_fails(line: Line, clock: Clock) -> None:
    await line.follower.start()
    await line.lose(1)
    line.engine.failing.add("history")
    reaching = asyncio.create_task(line.follower.reach(None))
    await clock.advance(10)
    assert not reaching.done()
    line.engine.failing.clear()
    await clock.advance(MAX_DELAY)
    await reaching
    assert line.delivered == [1]


async def test_caller_that_gives_up_does_not_end_the_read_for_others(line: Line) -> None:
    await line.follower.start()
    await line.lose(1)
    line.engine.hold("history")
    impatient, patient = (asyncio.create_task(line.follower.reach(None)) for _ in range(2))
    await line.engine.reached("history")
    impatient.cancel()
    await turns()
    line.engine.go_on("history")
    await patient
    assert impatient.cancelled()
    assert line.delivered == [1]


async def test_check_reads_nothing_where_the_position_is_right(line: Line) -> None:
    await line.follower.start()
    await line.publish(1)
    await line.follower.check()
    assert line.engine.calls["history"] == 0


async def test_publication_that_was_on_its_way_during_a_check_is_delivered_once(
    line: Line,
) -> None:
    await line.follower.start()
    late = await line.lose(1)
    await line.follower.check()
    line.arrive(*late)
    await line.publish(2)
    assert line.delivered == [1, 2]


async def test_check_fails_with_the_engine(line: Line) -> None:
    await line.follower.start()
    line.engine.failing.add("position")
    with pytest.raises(ConnectionError):
        await line.follower.check()


# the end


async def reading(line: Line) -> None:
    line.engine.hold("history")
    await line.lose(1)
    await line.publish(2)
    await line.engine.reached("history")


async def waiting_to_read_again(line: Line) -> None:
    line.engine.failing.add("history")
    await line.lose(1)
    await line.publish(2)
    await eventually(lambda: line.engine.calls["history"] == 1)
    await turns()


async def interrupted(line: Line) -> None:
    line.follower.interrupt()
    await line.publish(1)
    await turns()


async def at_rest(line: Line) -> None:
    await line.publish(1)
    line.delivered.clear()


@pytest.mark.parametrize("state", [at_rest, reading, waiting_to_read_again, interrupted])
async def test_stop_delivers_nothing_more_and_leaves_no_task(
    line: Line, clock: Clock, state: Callable[[Line], Any]
) -> None:
    await line.follower.start()
    await state(line)
    line.follower.stop()
    await line.publish(3)
    await clock.advance(100)
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert line.delivered == []
    assert line.losses == 0


async def test_follower_that_is_stopped_while_it_starts_leaves_no_task(
    line: Line, clock: Clock
) -> None:
    line.engine.hold_answer("position")
    starting = asyncio.create_task(line.follower.start())
    await line.engine.reached("position")
    await line.lose(1)
    await line.publish(2)

    line.follower.stop()
    line.engine.hold("history")
    line.engine.go_on("position")
    await starting
    await clock.advance(100)

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert line.delivered == []
