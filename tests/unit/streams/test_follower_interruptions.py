"""Followers of an engine that is interrupted."""

from __future__ import annotations

import asyncio

from realtime.streams.retries import MAX_DELAY
from tests.unit.parts import Clock, eventually, turns
from tests.unit.streams.follower_parts import Line, open_line, resume


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
    assert (line.delivered, line.losses) == ([1, 2, 3, 4, 5], 0)


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
