"""How many functions of a site run and wait, and how the runner ends."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
import threading
import time

import pytest
from asgiref.sync import sync_to_async

from realtime.errors import InternalError
from realtime.hooks import runner as runner_module
from realtime.hooks.runner import Runner
from tests.unit.hooks.runners import TIMEOUT, WORKERS
from tests.unit.parts import eventually


async def test_no_more_functions_run_at_once_than_there_are_workers(runner: Runner) -> None:
    lock = threading.Lock()
    now, most = 0, 0

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    async def count_async() -> None:
        await sync_to_async(count)()

    calls = [runner.run(count if number % 2 else count_async) for number in range(20)]
    await asyncio.gather(*calls)

    assert most == WORKERS


async def test_call_beyond_the_queue_is_refused_at_once(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_module, "MAX_QUEUE_PER_WORKER", 2)
    runner = Runner(1, TIMEOUT)
    waiting = [asyncio.create_task(runner.run(gate.wait)) for _ in range(1 + 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    with pytest.raises(InternalError):
        await runner.run(operator.add, 1, 2)
    assert "too many calls wait for a thread" in caplog.text

    gate.set()
    assert await asyncio.gather(*waiting) == [True] * 3
    assert await runner.run(operator.add, 1, 2) == 3
    await runner.close()


async def test_closed_runner_refuses_what_waits_and_what_comes(gate: threading.Event) -> None:
    runner = Runner(1, TIMEOUT)
    started = threading.Event()

    def first() -> bool:
        started.set()
        return gate.wait()

    running_call = asyncio.create_task(runner.run(first))
    await eventually(started.is_set)
    waiting = asyncio.create_task(runner.run(operator.add, 1, 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    await runner.close()

    with pytest.raises(InternalError):
        await waiting
    with pytest.raises(InternalError):
        await runner.run(operator.add, 1, 2)
    gate.set()
    assert await running_call is True


async def test_calls_nobody_waits_for_any_more_leave_the_queue(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(runner_module, "MAX_QUEUE_PER_WORKER", 2)
    runner = Runner(1, timeout=0.02)
    for _ in range(10):
        with pytest.raises(InternalError):
            await runner.run(gate.wait)
    await eventually(lambda: not runner._pool._waiting)
    gate.set()
    await runner.close()


def test_function_that_hangs_does_not_keep_the_process() -> None:
    code = (
        "import asyncio, time\n"
        "from django.conf import settings\n"
        "settings.configure(DATABASES={})\n"
        "from realtime.errors import InternalError\n"
        "from realtime.hooks.runner import Runner\n"
        "async def main():\n"
        "    runner = Runner(1, timeout=0.05)\n"
        "    try:\n"
        "        await runner.run(lambda: time.sleep(60))\n"
        "    except InternalError:\n"
        "        await runner.close()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=20, check=True, capture_output=True)
