"""The doctor at the PostgreSQL of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realtime.engine.postgresql.schema import create
from tests.database_server import DatabaseServer, Postgres, QuickPostgres
from tests.live.tools.command import Findings, examine, statuses
from tests.ports import refusing_port

pytestmark = pytest.mark.django_db  # the doctor counts pending rows

StartDatabase = Callable[[type[DatabaseServer]], DatabaseServer]

CHECKS = [
    "postgresql",
    "postgresql role",
    "postgresql tables",
    "postgresql latency",
    "postgresql commits",
    "postgresql connections",
    "postgresql clock",
]


def examine_at(server: DatabaseServer, **options: Any) -> Findings:
    url = f"postgresql://postgres:hidden@127.0.0.1:{server.port}/postgres"
    return examine({"engine": "postgresql", "database_url": url, **options})


@pytest.fixture(scope="module")
def server(start_database: StartDatabase) -> DatabaseServer:
    """A PostgreSQL that waits for the disk, with the tables."""
    server = start_database(Postgres)
    with server.connect() as connection:
        create(connection)
    return server


def test_healthy_postgresql_passes(server: DatabaseServer) -> None:
    found = examine_at(server)
    assert [name for name in found if name.startswith("postgresql")] == CHECKS
    assert set(statuses(found, *CHECKS)) == {"ok"}
    assert "hidden" not in str(found)


def test_missing_tables_fail(server: DatabaseServer) -> None:
    found = examine_at(server, database_schema="another")
    assert found["postgresql tables"]["status"] == "fail"


def test_commits_that_do_not_wait_for_the_disk_are_told(start_database: StartDatabase) -> None:
    found = examine_at(start_database(QuickPostgres))
    assert found["postgresql commits"]["status"] == "warn"


def test_postgresql_that_is_away_fails_and_nothing_more_is_asked() -> None:
    url = f"postgresql://postgres:hidden@127.0.0.1:{refusing_port()}/postgres"
    found = examine({"engine": "postgresql", "database_url": url})
    assert found["postgresql"]["status"] == "fail"
    assert [name for name in found if name.startswith("postgresql ")] == []
    assert "hidden" not in str(found)
