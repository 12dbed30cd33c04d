"""Turns of clients that connect, and how late the timers of a process come."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from realtime.node.limits.connect_queue import PER_TURN, ConnectQueue
from realtime.node.loop_lag import INTERVAL, REMEMBERED, SUSTAINED, LoopLag
from realtime.timers import Timers
from tests.unit.parts import Clock, turns


async def test_queue_go_on_at_once_while_there_are_few() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    for _ in range(5):
        # a coroutine that never waits ends at its first step
        waiting = [queue.turn() for _ in range(PER_TURN)]
        assert [_has_ended(each) for each in waiting] == [True] * PER_TURN
        await turns(1)


async def test_others_get_turns_while_thousands_come() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    through: list[int] = []

    async def come(number: int) -> None:
        await queue.turn()
        through.append(number)

    tasks = [asyncio.create_task(come(number)) for number in range(100 * PER_TURN)]
    seen = []
    while len(through) < len(tasks):
        seen.append(len(through))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)

    assert through == sorted(through)
    assert max(later - now for now, later in itertools.pairwise(seen)) <= 2 * PER_TURN
    assert len(seen) >= 50


async def test_newcomer_that_went_away_takes_no_turn() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    for _ in range(PER_TURN):
        await queue.turn()
    gone = [asyncio.create_task(queue.turn()) for _ in range(3 * PER_TURN)]
    stays = asyncio.create_task(queue.turn())
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await turns(3)
    assert stays.done()
    await asyncio.gather(*gone, return_exceptions=True)


async def test_newcomer_that_went_away_is_not_counted() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    tasks = [asyncio.create_task(queue.turn()) for _ in range(3 * PER_TURN + 5)]
    await asyncio.sleep(0)
    before = queue.waiting
    for task in tasks[-5:]:
        task.cancel()
    await asyncio.sleep(0)  # a turn of others, too
    after = queue.waiting
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (before, after, queue.waiting) == (2 * PER_TURN + 5, PER_TURN, 0)


async def test_nothing_is_due_once_all_are_through() -> None:
    loop = asyncio.get_running_loop()
    queue = ConnectQueue(loop)
    await asyncio.gather(*(queue.turn() for _ in range(3 * PER_TURN)))
    await turns(5)
    assert not queue._is_due


def _has_ended(coroutine: object) -> bool:
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return True
    return False


# loop lag: how late a timer comes, and when a process counts as overloaded


LIMIT = 0.5


@pytest.fixture
async def lag(clock: Clock) -> LoopLag:
    lag = LoopLag(Timers(asyncio.get_running_loop()), LIMIT)
    lag.start()
    return lag


async def looks(clock: Clock, number: int, late: float = 0.0) -> None:
    """Let so many looks pass, each late by some seconds."""
    for _ in range(number):
        await clock.advance(INTERVAL + late)


async def test_largest_lag_is_told_until_it_is_old(lag: LoopLag, clock: Clock) -> None:
    before = lag.seconds
    await looks(clock, 1)
    in_time = lag.seconds
    await looks(clock, 1, late=0.25)
    late = lag.seconds
    await looks(clock, REMEMBERED - 1)
    still = lag.seconds
    await looks(clock, 1)
    assert (before, in_time, late, still, lag.seconds) == (0, 0, 0.25, 0.25, 0)


async def test_loop_that_stays_late_is_overloaded_until_a_look_is_on_time(
    lag: LoopLag, clock: Clock
) -> None:
    await looks(clock, 2, late=1)
    before = lag.is_overloaded
    await looks(clock, 3, late=1)
    during = lag.is_overloaded
    await looks(clock, 1)
    assert (before, during, lag.is_overloaded) == (False, True, False)


async def test_one_long_pause_is_no_overload(lag: LoopLag, clock: Clock) -> None:
    await looks(clock, 1, late=60)
    during = lag.is_overloaded
    await looks(clock, 1)
    assert (during, lag.is_overloaded) == (False, False)


async def test_lag_below_the_limit_is_no_overload(lag: LoopLag, clock: Clock) -> None:
    await looks(clock, 30, late=LIMIT - 0.01)
    assert not lag.is_overloaded


async def test_without_a_limit_nothing_is_overloaded(clock: Clock) -> None:
    lag = LoopLag(Timers(asyncio.get_running_loop()))
    lag.start()
    await looks(clock, 10, late=2)
    assert not lag.is_overloaded
    assert lag.seconds == pytest.approx(2)


async def test_lag_is_sustained_when_a_tenth_of_the_looks_have_it(
    lag: LoopLag, clock: Clock
) -> None:
    await looks(clock, 1, late=60)
    await looks(clock, SUSTAINED - 2, late=0.5)
    before = lag.sustained
    await looks(clock, 1, late=0.25)
    assert (before, lag.sustained) == (0, 0.25)
