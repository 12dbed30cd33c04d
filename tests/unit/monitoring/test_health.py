"""Whether a node is ready: one question to the engine at a time, remembered for a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.monitoring.health import ENGINE_TIMEOUT, REMEMBERED, Readiness
from realtime.node.node import Node
from realtime.timers import Timers
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, turns
from tests.unit.suspended_engine import ClusterEngine

QUESTION = "round_trip"


@pytest.fixture
async def engine(clock: Clock) -> ClusterEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load({}), engine)
    await made.start()
    yield made
    await stop(made, clock, 10)


async def test_node_is_ready_until_it_drains(node: Node) -> None:
    readiness = Readiness()
    before = await readiness.of(node)
    node.begin_stop()
    assert (before, await readiness.of(node)) == (True, False)


async def test_node_that_begins_to_drain_during_the_question_is_not_ready(
    node: Node, engine: ClusterEngine
) -> None:
    engine.hold(QUESTION)
    asking = asyncio.create_task(Readiness().of(node))
    await engine.reached(QUESTION)
    node.begin_stop()
    engine.go_on(QUESTION)
    assert not await asking


async def test_node_without_redis_is_ready(clock: Clock) -> None:
    node = Node(load({}))
    assert await Readiness().of(node)


async def test_node_whose_engine_fails_is_not_ready_until_it_answers(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    readiness = Readiness()
    engine.failing.add(QUESTION)
    failed = await readiness.of(node)
    engine.failing.clear()
    remembered = await readiness.of(node)
    await clock.advance(REMEMBERED)
    assert (failed, remembered, await readiness.of(node)) == (False, False, True)


async def test_node_whose_engine_hangs_is_not_ready_after_a_second(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    engine.hold(QUESTION)
    asking = asyncio.create_task(Readiness().of(node))
    await engine.reached(QUESTION)
    await clock.advance(ENGINE_TIMEOUT)
    assert not await asking
    engine.go_on(QUESTION)


async def test_flood_of_requests_asks_the_engine_once_a_second(
    node: Node, engine: ClusterEngine, clock: Clock
) -> None:
    readiness = Readiness()
    engine.hold(QUESTION)
    flood = [asyncio.create_task(readiness.of(node)) for _ in range(1000)]
    await engine.reached(QUESTION)
    flood[0].cancel()  # a peer that goes must not take the answer from the others
    await turns()

    engine.go_on(QUESTION)
    answers = await asyncio.gather(*flood[1:])
    later = [await readiness.of(node) for _ in range(1000)]

    assert set(answers) | set(later) == {True}
    assert engine.calls[QUESTION] == 1
    await clock.advance(REMEMBERED)
    await readiness.of(node)
    assert engine.calls[QUESTION] == 2
