"""When a node looks for nodes that died, and when it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.cluster.dead_nodes import CLAIM, SETTLE_TIME, SWEEP_INTERVAL, Sweeper
from realtime.config.reader import load
from realtime.engine.lists import Kind, Swept
from realtime.engine.memory import MemoryLists
from realtime.node.background import Background
from realtime.timers import Timers
from tests.unit.parts import Clock, context, turns
from tests.unit.suspended_engine import ClusterEngine


class DeadNode(MemoryLists):
    """Lists of which one part can be taken; a reply may be lost."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = [Swept(Kind.USERS, ["7", "8"])]
        self.attempts: list[str] = []

    async def sweep(self, attempt: str) -> Swept | None:
        self.attempts.append(attempt)
        return self.parts.pop() if self.parts else None


class Bench:
    """A sweeper in the time of a test."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.timers = Timers(loop)
        self.engine = ClusterEngine(self.timers)
        self.lists = DeadNode()
        self.told: list[str] = []
        self.sweeper = Sweeper(
            context(load({}), self.timers, Background(loop).spawn),
            self.engine.cluster,
            self.lists,
            on_last=lambda kind, name: self.told.append(name),
            drained=self.drained,
        )

    async def drained(self, timeout: float) -> bool:
        return True


@pytest.fixture
async def bench(clock: Clock) -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.sweeper.stop()
    made.timers.close()


async def advance(clock: Clock, seconds: float) -> None:
    """Let time pass in the steps in which the sweeper looks."""
    for _ in range(int(seconds / SWEEP_INTERVAL)):
        await clock.advance(SWEEP_INTERVAL)
        await turns(20)


async def test_ends_are_told_when_the_engine_has_answered_for_a_time(
    bench: Bench, clock: Clock
) -> None:
    bench.sweeper.start()
    await advance(clock, SETTLE_TIME - 1)
    assert bench.told == []
    await advance(clock, 2 * SWEEP_INTERVAL)
    assert bench.told == ["7", "8"]


async def test_nothing_is_swept_just_after_the_engine_was_away(bench: Bench, clock: Clock) -> None:
    bench.lists.parts.clear()
    bench.sweeper.start()
    await advance(clock, 20)
    bench.engine.failing.add("claim")
    await advance(clock, 20)
    bench.lists.attempts.clear()
    bench.engine.failing.clear()

    await advance(clock, SETTLE_TIME - 1)
    assert bench.lists.attempts == []

    await advance(clock, 2 * SWEEP_INTERVAL)
    assert bench.lists.attempts


async def test_node_that_stops_looks_no_more(bench: Bench, clock: Clock) -> None:
    bench.sweeper.start()
    bench.sweeper.stop()
    await advance(clock, 20)
    assert bench.lists.attempts == []


async def test_work_of_another_node_is_left_to_it(bench: Bench, clock: Clock) -> None:
    await bench.engine.cluster.claim(CLAIM, "N2", 10)
    bench.sweeper.start()

    await advance(clock, 8)
    assert bench.lists.attempts == []

    await advance(clock, 3 * SWEEP_INTERVAL)
    assert bench.told == ["7", "8"]


async def test_each_attempt_has_another_name(bench: Bench, clock: Clock) -> None:
    bench.lists.parts *= 3
    bench.sweeper.start()
    await advance(clock, 20)
    assert bench.told == ["7", "8"] * 3
    assert len(set(bench.lists.attempts)) == len(bench.lists.attempts)
