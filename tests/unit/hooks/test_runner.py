"""Running functions of a site: threads and coroutines, bounded in time and number."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import SyncToAsync, async_to_sync, sync_to_async
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied

from realtime.errors import Disconnect, Error, InternalError, PermissionDenied
from realtime.hooks import runner as runner_module
from realtime.hooks.runner import Runner
from tests.unit.hooks.runners import TIMEOUT, WORKERS


def add(a: int, b: int) -> int:
    return a + b


async def add_async(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


class Adder:
    """An object that can be called, and hides a coroutine function."""

    async def __call__(self, a: int, b: int) -> int:
        return a + b


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that does not know coroutines."""
    return lambda *arguments: function(*arguments)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "function": add,
    "coroutine function": add_async,
    "object": Adder(),
    "partial of a function": functools.partial(add),
    "partial of a coroutine function": functools.partial(add_async),
    "coroutine function behind a decorator": decorated(add_async),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
async def test_function_is_called_with_its_arguments(
    runner: Runner, function: Callable[..., Any]
) -> None:
    assert await runner.run(function, 1, 2) == 3
    assert await runner.run(function, 1, 2, read=lambda answer: answer * 10) == 30


async def test_function_runs_on_a_worker_and_coroutine_on_the_loop(runner: Runner) -> None:
    async def thread_of_coroutine() -> str:
        return threading.current_thread().name

    assert (await runner.run(lambda: threading.current_thread().name)).startswith("realtime-hook")
    assert await runner.run(thread_of_coroutine) == threading.current_thread().name


async def test_answer_of_a_function_is_read_on_its_thread(runner: Runner) -> None:
    def name(_: object = None) -> str:
        return threading.current_thread().name

    assert (await runner.run(add, 1, 2, read=name)).startswith("realtime-hook")


# refusing and failing


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *((each, type(each)) for each in (Error(1001, "no credit"), Disconnect(4001, "no"))),
        *((each, type(each)) for each in (PermissionDenied(), InternalError())),
        (DjangoPermissionDenied(), PermissionDenied),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["function", "coroutine function", "read"])
async def test_error_and_disconnect_pass_without_a_log_entry(
    runner: Runner,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    expected: type[Exception],
    kind: str,
) -> None:
    def refuse(_: object = None) -> None:
        raise error

    async def refuse_async() -> None:
        raise error

    functions: dict[str, Callable[..., Any]] = {
        "function": refuse,
        "coroutine function": refuse_async,
        "read": int,
    }
    with pytest.raises(expected) as caught:
        await runner.run(functions[kind], read=refuse)
    assert caught.value is error or isinstance(error, DjangoPermissionDenied)
    assert caplog.records == []


def test_permission_denied_of_django_is_ours_in_a_view(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: object) -> None:
        raise DjangoPermissionDenied

    with pytest.raises(PermissionDenied):
        runner_module.call(refuse, None, bool)
    assert caplog.records == []


@pytest.mark.parametrize(
    "error", [ValueError, LookupError, TimeoutError, StopIteration, SystemExit, AssertionError]
)
@pytest.mark.parametrize("kind", ["function", "coroutine function"])
async def test_other_exception_is_an_internal_error_and_its_traceback_is_logged(
    runner: Runner, caplog: pytest.LogCaptureFixture, error: type[BaseException], kind: str
) -> None:
    def broken() -> None:
        raise error("the reason")

    async def broken_async() -> None:
        if error is StopIteration:
            broken()
        raise error("the reason")

    with pytest.raises(InternalError):
        await runner.run(broken if kind == "function" else broken_async)

    [record] = caplog.records
    assert (record.name, record.levelno) == ("realtime.hooks", logging.ERROR)
    assert "broken" in record.getMessage()
    assert record.exc_info is not None
    assert "the reason" in caplog.text
    assert "in broken" in caplog.text


async def test_failing_object_without_a_name_is_logged_too(
    runner: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InternalError):
        await runner.run(functools.partial(add, 1), "2")
    assert "functools.partial" in caplog.records[0].getMessage()


# time


async def test_function_that_takes_too_long_is_an_internal_error(
    impatient: Runner, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InternalError):
        await impatient.run(gate.wait)
    assert not gate.is_set()
    assert caplog.records[0].getMessage().endswith("took longer than 0.05 s")


async def test_coroutine_that_takes_too_long_is_cancelled(impatient: Runner) -> None:
    cancelled = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(InternalError):
        await impatient.run(endless)

    await asyncio.wait_for(cancelled.wait(), TIMEOUT)


async def test_coroutine_that_does_not_stop_keeps_nobody_waiting(impatient: Runner) -> None:
    go_on = asyncio.Event()

    async def stubborn() -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(TIMEOUT):
        with pytest.raises(InternalError):
            await impatient.run(stubborn)
    assert not go_on.is_set()
    go_on.set()


async def test_caller_that_is_cancelled_stops_its_coroutine(runner: Runner) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    caller = asyncio.create_task(runner.run(endless))
    await started.wait()
    caller.cancel()

    await asyncio.wait_for(cancelled.wait(), TIMEOUT)
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_slow_thread_of_a_coroutine_stalls_no_other_coroutine(
    runner: Runner, gate: threading.Event
) -> None:
    async def uses_a_thread(function: Callable[[], Any]) -> Any:
        return await sync_to_async(function)()

    slow = asyncio.create_task(runner.run(uses_a_thread, gate.wait))
    try:
        assert await runner.run(uses_a_thread, lambda: "quick") == "quick"
        assert not gate.is_set()
    finally:
        gate.set()
        assert await slow is True


async def test_functions_run_where_asgiref_does_not_let_threads_be_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # what it would be like if a new version dropped what is not documented
    monkeypatch.setattr(SyncToAsync, "context_to_thread_executor", None)
    runner = Runner(WORKERS, TIMEOUT)
    assert await runner.run(add, 1, 2) == 3
    assert await runner.run(add_async, 1, 2) == 3
    await runner.close()


async def test_coroutine_run_by_async_to_sync_within_a_thread_uses_that_thread(
    runner: Runner,
) -> None:
    """With as many calls under way as threads, another thread would never come."""

    async def inner() -> int:
        return await sync_to_async(threading.get_ident)()

    def outer() -> bool:
        return async_to_sync(inner)() == threading.get_ident()

    answers = await asyncio.gather(*(runner.run(outer) for _ in range(WORKERS)))

    assert answers == [True] * WORKERS
