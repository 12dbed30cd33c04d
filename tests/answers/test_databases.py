"""Answers in PostgreSQL and MariaDB: one answer runs in a channel where ten threads begin one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from realtime.answers import Busy, begin
from realtime.answers.models import Answer
from realtime.hooks.runner import own_connections
from tests.answers.helpers import channel
from tests.database_server import DatabaseServer, tables_on

pytest_plugins = ["tests.database_fixtures"]

pytestmark = pytest.mark.usefixtures("over_redis", "database")

THREADS = 10


class Router:
    """The answers of the site are in a database of their own."""

    def db_for_write(self, model: type, **_: object) -> str | None:
        return "server" if model is Answer else None

    db_for_read = db_for_write


@pytest.fixture
def database(database_server: DatabaseServer, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with (
        django_db_blocker.unblock(),
        tables_on(database_server, "realtime_answers", "realtime_pending"),
        override_settings(DATABASE_ROUTERS=[f"{__name__}.Router"]),
    ):
        yield


@pytest.mark.parametrize(
    ("if_busy", "outcomes"),
    [
        ("refuse", {"queued": 1, "busy": THREADS - 1}),
        ("queue", {"queued": 1, "waiting": THREADS - 1}),
        ("stop", {"queued": 1, "stopped": THREADS - 1}),
        ("beside", {"queued": THREADS}),
    ],
)
def test_threads_that_begin_at_once(if_busy: str, outcomes: dict[str, int]) -> None:
    name, together = channel(), Barrier(THREADS)

    def begin_one() -> str | None:
        with own_connections():
            together.wait()
            try:
                begin(name, if_busy=if_busy)
            except Busy:
                return "busy"
        return None

    with ThreadPoolExecutor(THREADS) as pool:
        refused = [pool.submit(begin_one) for _ in range(THREADS)]
        found = Counter(each.result() for each in refused)
    found.update(Answer.objects.values_list("status", flat=True))
    del found[None]
    assert found == outcomes
