"""Reads of many streams that fail together are tried again one at a time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from realtime.errors import EngineUnavailable
from realtime.streams.retries import MAX_DELAY, Retries
from tests.unit.parts import Clock, turns

STREAMS = 50


class Engine:
    """Counts the attempts to read streams, and fails until it is repaired."""

    def __init__(self) -> None:
        self.broken = True
        self.attempts = 0
        self.retries = Retries()

    async def follow(self, channel: str, *, damaged: bool = False) -> None:
        """Read a stream until that succeeds."""
        failures = 0
        while True:
            try:
                async with self.retries.attempt(channel, failures):
                    self.attempts += 1
                    await asyncio.sleep(0)
                    if self.broken or damaged:
                        raise EngineUnavailable("loading")
                return
            except EngineUnavailable:
                failures += 1


@pytest.fixture
async def engine() -> Engine:
    return Engine()


async def test_streams_that_fail_together_are_tried_again_one_at_a_time(
    engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "realtime.node")
    following = [asyncio.create_task(engine.follow(f"c{n}")) for n in range(STREAMS)]
    await turns()
    assert engine.attempts == STREAMS  # the first attempt is free

    for _ in range(400):
        await clock.advance(0.05)
    assert 5 <= engine.attempts - STREAMS <= 30  # in 20 seconds
    assert len(caplog.records) == 1

    engine.broken = False
    await clock.advance(MAX_DELAY)
    await turns(5 * STREAMS)
    assert all(task.done() for task in following)
    await asyncio.gather(*following)


async def test_damaged_stream_does_not_delay_others(engine: Engine, clock: Clock) -> None:
    engine.broken = False
    damaged = asyncio.create_task(engine.follow("damaged", damaged=True))
    await turns()
    await engine.follow("c")  # the clock stands still
    assert engine.attempts == 2
    for _ in range(400):
        await clock.advance(0.05)
    assert 10 <= engine.attempts <= 40
    damaged.cancel()
    await asyncio.wait([damaged])
