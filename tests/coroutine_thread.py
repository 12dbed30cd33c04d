"""The thread in which asgiref runs what coroutines of tests ask of the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections


@pytest.fixture(autouse=True)
def no_connections_of_other_coroutines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget the database connections that a test's coroutines opened in the thread of asgiref.

    The thread stays, so a later test would meet a connection to another database, or one that it is
    not allowed to use. Closing is not enough: Django keeps those to databases in memory open.
    """
    if not request.node.get_closest_marker("asyncio"):
        yield
        return
    _forget_in_thread()  # a test that runs a loop of its own may have left some, too
    yield
    _forget_in_thread()


def _forget_in_thread() -> None:
    SyncToAsync.single_thread_executor.submit(_forget_connections).result()


def _forget_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close()
        del connections[connection.alias]
