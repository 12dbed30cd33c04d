"""The lag of an event loop, measured by a timer that comes late."""

from __future__ import annotations

import asyncio

from realtime.node.loop_lag import INTERVAL, REMEMBERED, LoopLag
from tests.unit.parts import Clock


async def test_largest_lag_is_told_until_it_is_old(clock: Clock) -> None:
    lag = LoopLag(asyncio.get_running_loop())
    before = lag.seconds
    lag.start()

    await clock.advance(INTERVAL)
    in_time = lag.seconds
    await clock.advance(INTERVAL + 0.25)
    late = lag.seconds
    for _ in range(REMEMBERED - 1):
        await clock.advance(INTERVAL)
    still = lag.seconds
    await clock.advance(INTERVAL)

    assert (before, in_time, late, still, lag.seconds) == (0, 0, 0.25, 0.25, 0)
    lag.stop()


async def test_lag_is_not_measured_after_the_end(clock: Clock) -> None:
    lag = LoopLag(asyncio.get_running_loop())
    lag.start()

    lag.stop()
    await clock.advance(10)

    assert lag.seconds == 0
