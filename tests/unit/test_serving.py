"""The node of a loop: started once, found when it is started, and tried again when it failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.config import sources
from realtime.config.options import Config
from realtime.config.reader import InvalidOptions
from realtime.engine.base import Engine, Receiver
from realtime.engine.factory import Engines
from realtime.engine.memory import MemoryEngine
from realtime.errors import EngineUnavailable, NotServing
from realtime.hooks.registry import Registry
from realtime.serving import Serving
from realtime.timers import Timers
from tests.unit.node.node_parts import Connection, OpenedClient
from tests.unit.parts import eventually, turns


class LateEngine(MemoryEngine):
    """Waits until a test opens the gate, and cannot be reached the first few times."""

    def __init__(self, engines: LateEngines) -> None:
        super().__init__(Timers(asyncio.get_running_loop()))
        self._engines = engines

    async def start(self, receiver: Receiver, uid: str) -> None:
        await self._engines.gate.wait()
        if self._engines.failures:
            self._engines.failures -= 1
            raise EngineUnavailable("the engine cannot be reached")
        self._engines.started += 1
        await super().start(receiver, uid)


class LateEngines(Engines):
    """Makes late engines. The gate is open at first."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.started = 0

    def of(self, config: Config) -> Any:
        return self

    def engine(self, config: Config) -> Engine:
        return LateEngine(self)


@pytest.fixture
async def engines() -> LateEngines:
    return LateEngines()


@pytest.fixture
async def serving(engines: LateEngines) -> AsyncIterator[Serving]:
    """What a process serves with, with late engines."""
    made = Serving(sources.configuration, Registry(), engines)
    yield made
    await made.stop()


async def test_node_does_not_start_before_the_hooks_of_the_site_are_loaded(
    engines: LateEngines,
) -> None:
    hooks = Registry(is_loaded=False)
    serving = Serving(sources.configuration, hooks, engines)
    with pytest.raises(RuntimeError, match="INSTALLED_APPS"):
        await serving.start()
    assert engines.started == 0


async def test_start_that_failed_is_tried_again_at_the_next_call(
    serving: Serving, engines: LateEngines
) -> None:
    engines.failures = 2
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await serving.start()
        with pytest.raises(NotServing):
            serving.serving_node()
    node = await serving.start()
    assert engines.started == 1
    assert serving.serving_node() is node


async def test_options_that_were_corrected_are_used_at_the_next_call(
    serving: Serving, settings: Any
) -> None:
    settings.REALTIME = {"nope": 1}
    with pytest.raises(InvalidOptions):
        await serving.start()
    settings.REALTIME = {"name": "corrected"}
    node = await serving.start()
    assert node.config.name == "corrected"
    await serving.stop()


async def test_node_is_not_found_before_it_is_started(
    serving: Serving, engines: LateEngines
) -> None:
    engines.gate.clear()
    starting = asyncio.create_task(serving.start())
    await turns()
    with pytest.raises(NotServing):
        serving.serving_node()
    engines.gate.set()
    assert await starting is serving.serving_node()


async def test_calls_at_the_same_time_get_the_same_node_when_it_is_started(
    serving: Serving, engines: LateEngines
) -> None:
    engines.gate.clear()
    calls = [asyncio.create_task(serving.start()) for _ in range(5)]
    await turns()
    assert not any(call.done() for call in calls)
    engines.gate.set()
    nodes = await asyncio.gather(*calls)
    assert len(set(nodes)) == 1
    assert engines.started == 1


async def test_calls_at_the_same_time_all_learn_that_it_failed(
    serving: Serving, engines: LateEngines
) -> None:
    engines.failures = 1
    results = await asyncio.gather(*(serving.start() for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [EngineUnavailable] * 3


async def test_caller_that_gives_up_does_not_end_the_start_for_others(
    serving: Serving, engines: LateEngines
) -> None:
    engines.gate.clear()
    impatient, patient = (asyncio.create_task(serving.start()) for _ in range(2))
    await turns()
    impatient.cancel()
    await turns()
    engines.gate.set()
    assert await patient is serving.serving_node()
    assert impatient.cancelled()


async def test_start_that_was_begun_is_the_one_that_is_waited_for(
    serving: Serving, engines: LateEngines
) -> None:
    engines.gate.clear()
    serving.begin_start()
    serving.begin_start()
    starting = asyncio.create_task(serving.start())
    await turns()
    assert serving.node() is None
    engines.gate.set()
    assert await starting is serving.node()
    assert engines.started == 1


async def test_start_that_was_begun_and_failed_is_tried_again_at_the_next_call(
    serving: Serving, engines: LateEngines
) -> None:
    engines.failures = 1
    serving.begin_start()
    await eventually(lambda: engines.failures == 0)
    await turns()
    assert serving.node() is None
    assert await serving.start() is serving.node()


async def test_node_is_found_until_it_has_stopped(serving: Serving) -> None:
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


async def test_clients_are_closed_when_the_stop_begins(serving: Serving) -> None:
    node = await serving.start()
    client = OpenedClient(node)
    serving.begin_stop()
    assert client.close_codes == [3001]


async def test_newcomer_to_a_process_that_ends_finds_the_stopped_node_which_closes_it(
    serving: Serving, engines: LateEngines
) -> None:
    node = await serving.start()
    await serving.stop(process_ends=True)
    newcomer = Connection(await serving.start())
    await newcomer.client.node.idle()
    assert newcomer.client.node is node
    assert newcomer.closes == [3001]
    assert engines.started == 1


async def test_beginning_to_stop_where_nothing_was_started_is_ignored(serving: Serving) -> None:
    serving.begin_stop()
    await serving.stop()
    assert serving.node() is None


async def test_forked_process_serves_no_clients_and_finds_the_lock_open(serving: Serving) -> None:
    node = await serving.start()
    with serving._lock:
        serving.begin_forked()
        with pytest.raises(NotServing):
            await asyncio.to_thread(serving.serving_node)
    assert serving.node() is None
    await node.stop()
