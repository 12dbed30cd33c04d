"""Functions that take too long: their threads are replaced, counted and limited per client."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from realtime.config.reader import read
from realtime.errors import Error, InternalError, LimitExceeded
from realtime.hooks import answers, pool
from realtime.hooks.registry import Registry
from realtime.hooks.runner import MAX_OVERDUE_PER_CLIENT, Runner, name_of
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import NO_HANDSHAKE, Caller
from tests.unit.parts import eventually

TIMEOUT = 0.1
SURE_TO_BEGIN = 1.0
"""Seconds in which a thread begins, however busy the machine is."""
CALLER = Caller("client", "17", NO_HANDSHAKE)


def hanging(gate: threading.Event) -> Callable[..., Any]:
    """Return a hook that ends when the gate opens."""

    def hang(*_: Any) -> None:
        gate.wait()

    return hang


def hanging_query(gate: threading.Event) -> Callable[..., Any]:
    """Return a coroutine hook that waits for a thread."""

    async def hang(*_: Any) -> None:
        await sync_to_async(gate.wait)()

    return hang


def answer(*_: Any) -> str:
    return "answer"


async def recovers(
    runner: Runner,
    caller: Caller | None = None,
    refusals: tuple[type[Error], ...] = (InternalError, LimitExceeded),
) -> None:
    """Return when the runner calls functions again, after some of these refusals."""
    async with asyncio.timeout(10):
        while True:
            try:
                assert await runner.run(answer, caller=caller) == "answer"
            except refusals:
                await asyncio.sleep(0)
                continue
            return


@pytest.mark.parametrize("kind", [hanging, hanging_query])
async def test_thread_of_an_overdue_call_is_replaced(
    gate: threading.Event, kind: Callable[..., Any]
) -> None:
    runner = Runner(1, TIMEOUT)
    for _ in range(2):
        with pytest.raises(InternalError):
            await runner.run(kind(gate))
        await recovers(runner)
    await runner.close()


async def test_thread_of_a_client_that_left_is_replaced(gate: threading.Event) -> None:
    runner = Runner(1, SURE_TO_BEGIN)
    began = threading.Event()

    def hang() -> None:
        began.set()
        gate.wait()

    call = asyncio.create_task(runner.run(hang))
    await eventually(began.is_set)
    call.cancel()

    await recovers(runner)
    await runner.close()


async def test_number_of_replaced_threads_is_limited(
    gate: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OVERDUE_PER_WORKER", 2)
    runner = Runner(1, TIMEOUT)
    for _ in range(2 + 1):
        with pytest.raises(InternalError):
            await runner.run(hanging(gate))
    assert "no more are replaced" in caplog.text

    with pytest.raises(InternalError):
        await runner.run(answer)

    gate.set()
    await recovers(runner)
    await runner.close()


async def test_log_names_what_keeps_the_threads_and_not_what_waits_for_them(
    gate: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_OVERDUE_PER_WORKER", 0)
    runner = Runner(1, SURE_TO_BEGIN)
    with pytest.raises(InternalError):
        await runner.run(hanging(gate))
    assert "hang took longer than 1 s" in caplog.text
    caplog.clear()

    with pytest.raises(InternalError):
        await runner.run(answer)

    [record] = caplog.records
    assert record.getMessage() == (
        f"{__name__}.answer did not begin within 1 s, because all threads are in use:"
        f" {__name__}.hanging.<locals>.hang (1)"
    )
    await runner.close()


async def test_overdue_calls_are_counted_in_the_log(
    gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "realtime.hooks")

    def busy() -> None:
        gate.wait()

    runner = Runner(1, SURE_TO_BEGIN)
    for _ in range(2):
        with pytest.raises(InternalError):
            await runner.run(busy)
    name = name_of(busy)
    assert f"Threads continue after their time: {name} (2)" in caplog.text

    gate.set()

    entry = f"A thread of {name}, which took too long, has ended"
    await eventually(lambda: caplog.text.count(entry) == 2)
    await runner.close()


@pytest.mark.parametrize("kind", [hanging, hanging_query])
@pytest.mark.parametrize("same", ["client", "user"])
async def test_client_and_user_may_have_a_few_overdue_calls(
    gate: threading.Event, kind: Callable[..., Any], same: str
) -> None:
    runner = Runner(2, TIMEOUT)
    clients = ["one"] * 4 if same == "client" else ["one", "two", "three", "four"]
    user = "" if same == "client" else "17"
    callers = [Caller(client, user, NO_HANDSHAKE) for client in clients]
    for caller in callers[:MAX_OVERDUE_PER_CLIENT]:
        with pytest.raises(InternalError):
            await runner.run(kind(gate), caller=caller)

    with pytest.raises(LimitExceeded):
        await runner.run(answer, caller=callers[-1])
    # a thread that begins late is no refusal of the client
    await recovers(runner, Caller("other", "", NO_HANDSHAKE), (InternalError,))

    gate.set()
    await recovers(runner, callers[-1])
    await runner.close()


@pytest.mark.parametrize("busy", ["rpc", "subscribe", "connect"])
async def test_hooks_of_one_group_leave_threads_to_the_others(
    gate: threading.Event, busy: str
) -> None:
    """Not even those that are still in time."""
    registry = Registry()
    began = threading.Event()

    def slow(*_: Any) -> None:
        began.set()
        gate.wait()

    hooks: dict[str, Any] = {"rpc": answer, "subscribe": answer, "connect": connected}
    hooks[busy] = slow
    registry.methods["method"] = hooks["rpc"]
    registry.add_pattern(registry.subscribe, "*", hooks["subscribe"])
    registry.add_single("connect", hooks["connect"])
    site = SiteHooks(read({"hook_workers": 1})[0], registry)

    def calls(kind: str) -> Any:
        match kind:
            case "rpc":
                return site.rpc(CALLER, "method", b"")
            case "subscribe":
                return site.subscribe(CALLER, "news", "")
        return site.connect(CALLER, b"", "", "")

    waiting = asyncio.create_task(calls(busy))
    await eventually(began.is_set)
    for kind in hooks.keys() - {busy}:
        await asyncio.wait_for(calls(kind), 20)

    assert not waiting.done()
    gate.set()
    await waiting
    await site.close()


def connected(request: Any) -> answers.Connected:
    return answers.Connected(user="17")
