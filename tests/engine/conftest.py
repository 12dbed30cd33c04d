"""The engines there are, for the tests of their contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.engine.memory import MemoryEngine
from realtime.timers import Timers
from tests.engine.bench import META_LIFETIME, Bench, RecordingReceiver
from tests.unit.parts import Clock


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    """The clock of the test's event loop, in the test's hands."""
    loop = asyncio.get_running_loop()
    yield Clock(loop)
    del loop.time  # type: ignore[method-assign]


@pytest.fixture(params=["memory"])
async def engine(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[Bench]:
    """Each engine, started, with time in the test's hands."""
    assert request.param == "memory"
    timers = Timers(asyncio.get_running_loop())
    bench = Bench(
        MemoryEngine(timers), MemoryEngine(timers, meta_lifetime=META_LIFETIME), clock.advance
    )
    await bench.engine.start(bench.receiver)
    await bench.forgetful.start(RecordingReceiver())
    yield bench
    await bench.engine.stop()
    await bench.forgetful.stop()
    timers.close()
