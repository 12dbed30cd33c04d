"""The node of a loop: started once, found when it is started, and tried again when it failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.config.reader import InvalidOptions
from realtime.engine.base import Receiver
from realtime.engine.memory import MemoryEngine
from realtime.errors import NotServing
from realtime.serving import serving
from tests.unit.node.node_parts import OpenedClient
from tests.unit.parts import eventually, turns


class LateEngine(MemoryEngine):
    """Cannot be reached the first few times, and waits until a test opens the gate."""

    failures = 0
    gate: asyncio.Event
    started = 0

    async def start(self, receiver: Receiver) -> None:
        await self.gate.wait()
        if LateEngine.failures:
            LateEngine.failures -= 1
            raise ConnectionError("the engine cannot be reached")
        LateEngine.started += 1
        await super().start(receiver)


@pytest.fixture
async def engine(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[type[LateEngine]]:
    """The engine of the nodes that are started in this test; its gate is open."""
    monkeypatch.setattr("realtime.node.node.MemoryEngine", LateEngine)
    monkeypatch.setattr(LateEngine, "failures", 0)
    monkeypatch.setattr(LateEngine, "started", 0)
    monkeypatch.setattr(LateEngine, "gate", asyncio.Event(), raising=False)
    LateEngine.gate.set()
    yield LateEngine
    await serving.stop()


async def test_start_that_failed_is_tried_again_at_the_next_call(engine: type[LateEngine]) -> None:
    engine.failures = 2

    for _ in range(2):
        with pytest.raises(ConnectionError):
            await serving.start()
        with pytest.raises(NotServing):
            serving.serving_node()
    node = await serving.start()

    assert engine.started == 1
    assert serving.serving_node() is node


async def test_options_that_were_mended_are_used_at_the_next_call(settings: Any) -> None:
    settings.REALTIME = {"nope": 1}
    with pytest.raises(InvalidOptions):
        await serving.start()

    settings.REALTIME = {"name": "mended"}
    node = await serving.start()

    assert node.config.name == "mended"
    await serving.stop()


async def test_node_is_not_found_before_it_is_started(engine: type[LateEngine]) -> None:
    engine.gate.clear()
    starting = asyncio.create_task(serving.start())
    await turns()

    with pytest.raises(NotServing):
        serving.serving_node()

    engine.gate.set()
    assert await starting is serving.serving_node()


async def test_calls_at_the_same_time_get_the_same_node_when_it_is_started(
    engine: type[LateEngine],
) -> None:
    engine.gate.clear()
    calls = [asyncio.create_task(serving.start()) for _ in range(5)]
    await turns()
    assert not any(call.done() for call in calls)

    engine.gate.set()
    nodes = await asyncio.gather(*calls)

    assert len(set(nodes)) == 1
    assert engine.started == 1


async def test_calls_at_the_same_time_all_learn_that_it_failed(engine: type[LateEngine]) -> None:
    engine.failures = 1

    results = await asyncio.gather(*(serving.start() for _ in range(3)), return_exceptions=True)

    assert [type(result) for result in results] == [ConnectionError] * 3


async def test_caller_that_gives_up_does_not_end_the_start_for_others(
    engine: type[LateEngine],
) -> None:
    engine.gate.clear()
    impatient, patient = (asyncio.create_task(serving.start()) for _ in range(2))
    await turns()

    impatient.cancel()
    await turns()
    engine.gate.set()

    assert await patient is serving.serving_node()
    assert impatient.cancelled()


async def test_start_that_was_begun_is_the_one_that_is_waited_for(engine: type[LateEngine]) -> None:
    engine.gate.clear()
    serving.begin_start()
    serving.begin_start()
    starting = asyncio.create_task(serving.start())
    await turns()
    assert serving.node() is None

    engine.gate.set()

    assert await starting is serving.node()
    assert engine.started == 1


async def test_start_that_was_begun_and_failed_is_tried_again_at_the_next_call(
    engine: type[LateEngine],
) -> None:
    engine.failures = 1
    serving.begin_start()
    await eventually(lambda: engine.failures == 0)
    await turns()
    assert serving.node() is None

    assert await serving.start() is serving.node()


async def test_node_is_found_until_it_has_stopped(engine: type[LateEngine]) -> None:
    node = await serving.start()
    last_work = asyncio.Event()

    async def work() -> None:
        await last_work.wait()

    node.spawn(work())
    stopping = asyncio.create_task(serving.stop())
    await turns()
    assert node.stopping
    assert serving.serving_node() is serving.node() is node

    last_work.set()
    await stopping

    assert serving.node() is None
    with pytest.raises(NotServing):
        serving.serving_node()


async def test_clients_are_told_when_the_stop_begins(engine: type[LateEngine]) -> None:
    node = await serving.start()
    client = OpenedClient(node)

    serving.begin_stop()

    assert client.close_codes == [3001]


async def test_beginning_to_stop_where_nothing_was_started_is_nothing() -> None:
    serving.begin_stop()
    await serving.stop()

    assert serving.node() is None
