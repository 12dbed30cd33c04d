"""Which connections of a test the kit shares with the threads that run functions of the site."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from realtime.testing.databases import Databases

MEMORY, DISK = "memory", "disk"


@pytest.fixture
def opened(django_db_blocker: DjangoDbBlocker, tmp_path: Path) -> Iterator[None]:
    """Two more databases, which this thread has opened."""
    names = {MEMORY: "file:of_a_test?mode=memory&cache=shared", DISK: str(tmp_path / "db.sqlite3")}
    with django_db_blocker.unblock():
        for alias, name in names.items():
            connections.settings[alias] = connections.settings["default"] | {"NAME": name}
            connections[alias].ensure_connection()
        yield
        for alias in names:
            connections[alias].close()
            del connections[alias], connections.settings[alias]


@pytest.mark.usefixtures("opened")
def test_database_in_memory_is_shared_without_a_transaction_and_one_on_disk_is_not() -> None:
    databases = Databases()
    databases.share()
    found = {}

    def look() -> None:
        with databases.use():
            found.update({alias: connections[alias] for alias in (MEMORY, DISK)})

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    databases.release()
    assert found[MEMORY] is connections[MEMORY]
    assert found[DISK] is not connections[DISK]
