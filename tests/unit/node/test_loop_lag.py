"""Loop lag: how late a timer comes, and when a process counts as overloaded."""

from __future__ import annotations

import asyncio

import pytest

from realtime.node.loop_lag import INTERVAL, REMEMBERED, SUSTAINED, LoopLag
from realtime.timers import Timers
from tests.unit.parts import Clock

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
