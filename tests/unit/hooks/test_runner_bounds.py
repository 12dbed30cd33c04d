"""How many functions of a site run and wait, and how the runner ends."""

from __future__ import annotations

import asyncio
import functools
import operator
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from pytest_django import DjangoDbBlocker

from realtime.errors import InternalError
from realtime.hooks import runner as runner_module
from realtime.hooks.runner import Runner
from tests.open_files import open_files
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


# functions of a site and the database: no connection stays behind


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Path]:
    """A database in a file, under the alias `hooks`."""
    path = tmp_path / "hooks.sqlite3"
    connections.settings["hooks"] = connections.settings["default"] | {"NAME": str(path)}
    with django_db_blocker.unblock():
        yield path
    del connections.settings["hooks"]


def open_connections(path: Path) -> int:
    """How many connections to a SQLite database this process holds."""
    return open_files("self").count(str(path))


def use(path: Path, *, fail: bool = False) -> int:
    """Use the database; returns how many connections were open then."""
    with connections["hooks"].cursor() as cursor:
        cursor.execute("SELECT 1")
    number = open_connections(path)
    if fail:
        raise ValueError(number)
    return number


async def use_async(path: Path, *, fail: bool = False) -> int:
    return await sync_to_async(use)(path, fail=fail)


@pytest.mark.parametrize("function", [use, use_async])
async def test_function_leaves_no_database_connection_behind(
    runner: Runner, database: Path, function: Callable[..., Any]
) -> None:
    assert await runner.run(function, database) == 1
    assert open_connections(database) == 0


@pytest.mark.parametrize("function", [use, use_async])
async def test_failing_function_leaves_no_database_connection_behind(
    runner: Runner, database: Path, function: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InternalError):
        await runner.run(functools.partial(function, fail=True), database)
    assert "ValueError: 1" in caplog.text
    assert open_connections(database) == 0


async def test_reading_the_answer_leaves_no_database_connection_behind(
    runner: Runner, database: Path
) -> None:
    assert await runner.run(int, read=lambda _: use(database)) == 1
    assert open_connections(database) == 0


@pytest.mark.parametrize("function", [use, use_async])
async def test_connection_that_is_to_be_kept_is_kept(
    database: Path, function: Callable[..., Any]
) -> None:
    connections.settings["hooks"]["CONN_MAX_AGE"] = None
    runner = Runner(1, TIMEOUT)
    assert [await runner.run(function, database) for _ in range(3)] == [1, 1, 1]
    assert open_connections(database) == 1
    await runner.run(lambda: connections["hooks"].close())
    await runner.close()
