"""The thread in which asgiref runs what coroutines of tests ask of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


@pytest.fixture(autouse=True)
def connections_of_coroutines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give coroutines the database connection of their test, and forget all others.

    The thread stays, so a later test would meet a connection to another database, or one that it is
    not allowed to use. Closing is not enough: Django keeps those to databases in memory open.
    """
    if not request.node.get_closest_marker("asyncio"):
        yield
        return
    _in_thread(_forget)  # a test that runs a loop of its own may have left some, too
    if not request.node.get_closest_marker("django_db"):
        yield
        _in_thread(_forget)
        return
    shared: BaseDatabaseWrapper = connections["default"]
    shared.inc_thread_sharing()
    _in_thread(lambda: connections.__setitem__("default", shared))
    yield
    _in_thread(lambda: connections.__delitem__("default"))
    shared.dec_thread_sharing()
    _in_thread(_forget)


def _in_thread(function: Callable[[], None]) -> None:
    SyncToAsync.single_thread_executor.submit(function).result()


def _forget() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close()
        del connections[connection.alias]
