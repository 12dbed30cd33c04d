"""Fixtures of database servers, for `pytest_plugins` of the test modules that need one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.database_server import DatabaseServer, MariaDB, Postgres


@pytest.fixture(scope="session", params=[Postgres, MariaDB], ids=lambda kind: kind.name)
def database_server(
    request: pytest.FixtureRequest,
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    """A server of each kind."""
    return start_database(request.param)
