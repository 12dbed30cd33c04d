"""Engines over PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.database_server import DatabaseServer
from tests.engine.postgresql_bench import PostgreSQLBench, postgresql_bench


@pytest.fixture
async def postgresql(
    postgresql_server: DatabaseServer, unique: str
) -> AsyncIterator[PostgreSQLBench]:
    """An engine over the shared PostgreSQL."""
    async with postgresql_bench(postgresql_server, unique) as bench:
        yield bench
