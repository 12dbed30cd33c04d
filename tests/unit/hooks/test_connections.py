"""Functions of a site and the database: no connection stays behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from pytest_django import DjangoDbBlocker

from realtime.errors import InternalError
from realtime.hooks.runner import Runner
from tests.open_files import open_files
from tests.unit.hooks.runners import TIMEOUT


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
