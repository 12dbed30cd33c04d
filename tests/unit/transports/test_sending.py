"""Driving a server's `send`: at once where it can, in a task where it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from realtime.protocol.frames import Frame
from realtime.transports.asgi import Suspended, start
from realtime.transports.sending import send_event
from tests.unit.parts import turns


class Server:
    """An ASGI server's `send`, which waits where a test tells it to."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def at_once(self) -> None:
        self.steps.append("sent")

    async def after_the_gate(self) -> None:
        self.steps.append("begun")
        try:
            self.steps.append(await self.gate)
        finally:
            self.steps.append("ended")

    async def after_a_turn(self) -> None:
        self.steps.append("begun")
        await asyncio.sleep(0)
        self.steps.append("sent")

    async def in_many_steps(self) -> None:
        for number in range(5):
            await asyncio.sleep(0)
            self.steps.append(str(number))
        self.steps.append(await self.gate)

    async def failing_at_once(self) -> None:
        raise ConnectionResetError

    async def failing_later(self) -> None:
        await asyncio.sleep(0)
        raise ConnectionResetError


@pytest.fixture
async def server() -> Server:
    return Server()


def in_task(awaitable: Awaitable[None]) -> tuple[asyncio.Task[None], list[asyncio.Task[None]]]:
    """Start, and finish in a task; returns it and the tasks that were reported as done."""
    rest = start(awaitable)
    assert isinstance(rest, Suspended)
    done: list[asyncio.Task[None]] = []
    return rest.finish_in_task(asyncio.get_running_loop(), done.append), done


async def test_send_that_does_not_wait_is_over_at_once(server: Server) -> None:
    assert start(server.at_once()) is None
    assert server.steps == ["sent"]


async def test_awaiting_something_finished_is_no_waiting(server: Server) -> None:
    server.gate.set_result("sent")
    assert start(server.after_the_gate()) is None
    assert server.steps == ["begun", "sent", "ended"]


async def test_send_that_waits_has_begun_and_the_rest_is_returned(server: Server) -> None:
    task, _ = in_task(server.after_the_gate())
    assert server.steps == ["begun"]
    server.gate.set_result("sent")
    await task
    assert server.steps == ["begun", "sent", "ended"]


@pytest.mark.parametrize("already", [False, True], ids=["gate opens later", "gate opens before"])
async def test_rest_goes_on_also_when_the_waiting_is_over_before_its_task_starts(
    server: Server, already: bool
) -> None:
    rest = start(server.after_the_gate())
    assert rest is not None
    if already:
        server.gate.set_result("sent")
    task = rest.finish_in_task(asyncio.get_running_loop(), lambda task: None)
    if not already:
        await turns()
        server.gate.set_result("sent")

    await task

    assert server.steps == ["begun", "sent", "ended"]


async def test_send_may_wait_many_times(server: Server) -> None:
    task, done = in_task(server.in_many_steps())
    await turns(10)
    assert not done
    server.gate.set_result("last")
    await task
    await turns()
    assert server.steps == ["0", "1", "2", "3", "4", "last"]
    assert done == [task]


async def test_exception_before_the_first_wait_is_raised_at_once(server: Server) -> None:
    with pytest.raises(ConnectionResetError):
        start(server.failing_at_once())


async def test_exception_after_the_first_wait_is_the_task_s(server: Server) -> None:
    task, done = in_task(server.failing_later())
    with pytest.raises(ConnectionResetError):
        await task
    assert done == [task]


async def test_exception_of_what_is_waited_for_arrives_in_send(server: Server) -> None:
    task, _ = in_task(server.after_the_gate())
    await turns()
    server.gate.set_exception(ConnectionResetError())
    with pytest.raises(ConnectionResetError):
        await task
    assert server.steps == ["begun", "ended"]


@pytest.mark.parametrize("started", [True, False], ids=["task runs", "task has not started"])
async def test_cancelling_the_task_cancels_send(server: Server, started: bool) -> None:
    task, done = in_task(server.after_the_gate())
    if started:
        await turns()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [task]
    # a task that has not started lets go of `send` when it goes itself
    done.clear()
    del task
    await turns()
    assert server.steps == ["begun", "ended"]


async def test_send_that_cleans_up_on_cancel_may_wait_once_more(server: Server) -> None:
    async def careful() -> None:
        try:
            await server.gate
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            server.steps.append("cleaned up")
            raise

    task, _ = in_task(careful())
    await turns()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.steps == ["cleaned up"]


@pytest.mark.parametrize(
    "make",
    [
        lambda server: server.after_a_turn(),
        lambda server: asyncio.wait_for(server.gate, 60),
        lambda server: asyncio.get_running_loop().create_task(server.after_a_turn()),
    ],
    ids=["coroutine", "with a timeout", "task"],
)
async def test_whatever_is_awaitable_can_be_sent(
    server: Server, make: Callable[[Server], Awaitable[None]]
) -> None:
    task, _ = in_task(make(server))
    await turns()
    server.gate.set_result("sent")
    await task
    assert task.exception() is None


@pytest.mark.parametrize(
    ("frame", "event"),
    [
        (Frame("é".encode(), binary=False), {"type": "websocket.send", "text": "é"}),
        (Frame(b"\xff", binary=True), {"type": "websocket.send", "bytes": b"\xff"}),
    ],
    ids=["text", "binary"],
)
def test_asgi_event_of_a_frame(frame: Frame, event: dict[str, object]) -> None:
    assert send_event(frame) == event
