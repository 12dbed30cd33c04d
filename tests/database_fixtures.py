"""Fixtures of database servers, for `pytest_plugins` of the test modules that need one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from realtime.config import sources
from tests.database_server import DatabaseServer, MariaDB, Postgres, PromotedPostgres
from tests.site_database import SITE, SiteDatabase


@pytest.fixture(scope="session")
def database_servers() -> dict[type[DatabaseServer], DatabaseServer]:
    """The servers of `database_server` so far: pytest may ask for a kind again."""
    return {}


@pytest.fixture(scope="session", params=[Postgres, MariaDB], ids=lambda kind: kind.name)
def database_server(
    request: pytest.FixtureRequest,
    database_servers: dict[type[DatabaseServer], DatabaseServer],
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    """A server of each kind."""
    if request.param not in database_servers:
        database_servers[request.param] = start_database(request.param)
    return database_servers[request.param]


@pytest.fixture(scope="session")
def site_server(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    """A PostgreSQL for sites."""
    return start_database(PromotedPostgres)


@pytest.fixture
def site_database(
    site_server: DatabaseServer, unique: str, django_db_blocker: DjangoDbBlocker
) -> Iterator[SiteDatabase]:
    """A database that site and engine share: without the tables of the engine."""
    with django_db_blocker.unblock():
        entry = connections["default"].settings_dict | {"OPTIONS": {}} | site_server.settings
        connections.settings[SITE] = entry
        database = SiteDatabase(site_server, unique)
        database.override()
        yield database
        database.close()
        sources.configuration.override()
        with site_server.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS realtime_pending")
            connection.execute("DROP TABLE IF EXISTS realtime_pending_relay")
            connection.execute("DROP TABLE IF EXISTS django_migrations")
        connections[SITE].close()
        del connections.settings[SITE], connections[SITE]
