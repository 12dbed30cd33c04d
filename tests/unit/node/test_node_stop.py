"""The end of a node: its clients are closed with 3001, in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.engine.base import Receiver
from realtime.errors import EngineUnavailable
from realtime.node.hooks import Hooks
from realtime.node.node import ENGINE_STOP_TIMEOUT, SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.node.node_parts import EVERYTHING, Connection, OpenedClient, stop
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import METHODS, ClusterEngine, SuspendedEngine

SHUTDOWN = 3001


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    """A node in the test's time, which moves while it stops."""
    made = Node(load(EVERYTHING))
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


# clients


async def test_stopping_closes_everyone_with_shutdown_and_newcomers_too(node: Node) -> None:
    connected = OpenedClient(node)
    node.begin_stop()
    opened = OpenedClient(node)
    assert (connected.close_codes, opened.close_codes) == ([SHUTDOWN], [SHUTDOWN])


async def test_node_is_draining_from_the_first_moment_of_its_stop(node: Node) -> None:
    before = node.is_draining
    node.begin_stop()
    assert (before, node.is_draining) == (False, True)


async def test_closed_connection_is_not_closed_again_by_stopping(node: Node) -> None:
    client = OpenedClient(node)
    node.closed(client)
    node.begin_stop()
    assert client.closes == []


async def test_beginning_to_stop_twice_closes_everyone_once(node: Node) -> None:
    client = OpenedClient(node)
    node.begin_stop()
    node.begin_stop()
    await node.stop()
    assert client.close_codes == [SHUTDOWN]


# work


async def test_stop_waits_for_work_beside_the_clients(node: Node) -> None:
    finished = asyncio.Event()

    async def work() -> None:
        await turns(20)
        finished.set()

    node.spawn(work())
    await node.stop()
    assert finished.is_set()


async def test_work_that_hangs_is_cancelled_when_the_time_is_up(node: Node, clock: Clock) -> None:
    cancelled = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    node.spawn(hang())
    await turns()
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    await eventually(cancelled.is_set)


async def test_client_that_does_not_close_does_not_keep_the_node(node: Node, clock: Clock) -> None:
    client = OpenedClient(node)
    client.close = client.closes.append  # type: ignore[method-assign, assignment]
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert client.close_codes == [SHUTDOWN]


# the engine


async def serving(clock: Clock) -> tuple[Node, SuspendedEngine, Connection]:
    """A node that speaks to others, and a client that is subscribed there."""
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(EVERYTHING), engine)
    await node.start()
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17"))
    await connection.subscribe("a")
    assert connection.reply(2) is not None
    return node, engine, connection


async def test_node_that_stops_is_withdrawn_and_leaves_no_client_present(clock: Clock) -> None:
    node, engine, connection = await serving(clock)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert engine.calls["withdraw"] == 1
    assert await engine.presence.get("a") == {}
    assert (connection.closes, node.hub.clients, node.hub.feeds) == ([SHUTDOWN], {}, {})


@pytest.mark.parametrize("method", [*METHODS, "every one"])
async def test_node_whose_engine_hangs_closes_its_clients_and_ends_in_time(
    clock: Clock, method: str
) -> None:
    node, engine, connection = await serving(clock)
    engine.hold(*(METHODS if method == "every one" else [method]))
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert connection.closes == [SHUTDOWN]


async def test_time_to_stop_counts_from_its_beginning(clock: Clock) -> None:
    # uvicorn waits for the clients, which wait for the engine, before it ends the lifespan
    node, engine, _connection = await serving(clock)
    engine.hold(*METHODS)
    node.begin_stop()
    await clock.advance(SHUTDOWN_TIMEOUT / 2)
    await stop(node, clock, SHUTDOWN_TIMEOUT / 2)


async def test_node_that_is_stopped_late_still_says_farewell(clock: Clock) -> None:
    node, engine, _connection = await serving(clock)
    node.begin_stop()
    await clock.advance(2 * SHUTDOWN_TIMEOUT)
    await stop(node, clock, ENGINE_STOP_TIMEOUT)
    assert engine.calls["withdraw"] == 1


async def test_node_that_is_stopped_late_does_not_wait_long_for_an_engine_that_hangs(
    clock: Clock,
) -> None:
    node, engine, _connection = await serving(clock)
    engine.hold(*METHODS)
    node.begin_stop()
    await clock.advance(2 * SHUTDOWN_TIMEOUT)
    await stop(node, clock, ENGINE_STOP_TIMEOUT)


async def test_client_is_closed_at_once_also_while_the_engine_hangs(clock: Clock) -> None:
    node, engine, connection = await serving(clock)
    engine.hold(*METHODS)
    node.begin_stop()
    await eventually(lambda: connection.closes == [SHUTDOWN])  # the clock stands still
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def test_work_that_begins_while_the_node_withdraws_ends_before_the_engine(
    clock: Clock,
) -> None:
    node, engine, _connection = await serving(clock)
    engine.hold("withdraw")
    stopping = asyncio.create_task(node.stop())
    await engine.reached("withdraw")
    begun: list[asyncio.Task[None]] = []

    async def hang() -> None:
        await asyncio.Event().wait()

    node.timers.timer(lambda: begun.append(node.spawn(hang()))).set(node.timers.now())
    await eventually(lambda: bool(begun))
    engine.go_on("withdraw")
    await stopping
    assert begun[0].cancelled()


STEPS = ["subscribe", "position", "presence.add"]
"""What the engine is asked while a client subscribes, in this order."""


@pytest.mark.parametrize("step", STEPS)
async def test_client_whose_subscribe_hangs_in_the_engine_is_closed_too(
    clock: Clock, step: str
) -> None:
    node, engine, connection = await serving(clock)
    engine.hold(*METHODS)
    command = connection.say(3, 1, channel="b")
    engine.go_on(*STEPS[: STEPS.index(step)])
    await engine.reached(step)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert connection.closes == [SHUTDOWN]
    engine.go_on(*engine.held)
    await command


class EndlessEngine(SuspendedEngine):
    """Does not end, either."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


async def test_node_ends_in_time_also_where_the_engine_does_not_end(clock: Clock) -> None:
    node = Node(load(EVERYTHING), EndlessEngine(Timers(asyncio.get_running_loop())))
    await node.start()
    await stop(node, clock, SHUTDOWN_TIMEOUT)


class BrokenEngine(SuspendedEngine):
    """Fails even when it ends."""

    async def stop(self) -> None:
        raise EngineUnavailable("the engine cannot be reached")


class RecordingHooks(Hooks):
    """Knows whether it was closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True


async def test_engine_that_fails_at_the_end_keeps_nothing_else_from_ending(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = RecordingHooks()
    node = Node(load(EVERYTHING), BrokenEngine(Timers(asyncio.get_running_loop())), hooks)
    fired: list[str] = []
    node.timers.timer(lambda: fired.append("timer")).set(clock.now + 10)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    await clock.advance(20)
    assert (hooks.closed, fired) == (True, [])
    assert "The engine did not stop" in caplog.text


class SlowHooks(RecordingHooks):
    """Takes long to close."""

    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_node_ends_in_time_also_where_hooks_are_not_closed_in_time(clock: Clock) -> None:
    node = Node(load(EVERYTHING), EndlessEngine(Timers(asyncio.get_running_loop())), SlowHooks())
    await node.start()
    OpenedClient(node).close = lambda disconnect: None  # type: ignore[method-assign]
    await stop(node, clock, SHUTDOWN_TIMEOUT)


@pytest.mark.parametrize("step", ["start", "subscribe", "position", "announce"])
async def test_node_that_could_not_be_started_keeps_nothing(clock: Clock, step: str) -> None:
    engine = UnwillingEngine(Timers(asyncio.get_running_loop()))
    engine.failing.add(step)
    hooks = RecordingHooks()
    node = Node(load(EVERYTHING), engine, hooks)
    released: list[str] = []
    node.verifier.close = lambda: released.append("verifier")  # type: ignore[method-assign]
    tasks = asyncio.all_tasks()

    with pytest.raises(EngineUnavailable):
        await node.start()

    assert (hooks.closed, released) == (True, ["verifier"])
    assert engine.broker.receiver is None
    assert asyncio.all_tasks() == tasks


async def test_log_says_for_what_the_end_has_waited(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    node, engine, _ = await serving(clock)
    engine.hold(*METHODS)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert "could not withdraw: the engine did not answer before this process" in caplog.text


class UnwillingEngine(ClusterEngine):
    """Its start can fail, too."""

    async def start(self, receiver: Receiver, uid: str) -> None:
        if "start" in self.failing:
            raise EngineUnavailable("the engine cannot be reached")
        await super().start(receiver, uid)


async def test_node_ends_where_the_engine_fails(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    node, engine, connection = await serving(clock)
    engine.failing.update(METHODS)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert connection.closes == [SHUTDOWN]
    assert any("could not withdraw" in record.getMessage() for record in caplog.records)


async def test_streams_are_not_followed_after_the_end(clock: Clock) -> None:
    node, engine, _connection = await serving(clock)
    engine.hold("presence.remove")  # so that the feed is still there at the end
    node.on_interrupted(lambda channel: True)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert engine.calls["history"] == 0
