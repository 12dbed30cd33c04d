"""The options of each engine, for `pytest_plugins` of tests that walk them all."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.engine.postgresql.schema import create
from tests.conftest import new_word
from tests.database_server import DatabaseServer
from tests.redis_server import RedisServer


@pytest.fixture(params=["memory", "redis", "postgresql"])
def engine_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of an engine that nothing else uses."""
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("redis_server")
        return {"redis_url": redis.url, "redis_prefix": new_word()}
    if request.param == "postgresql":
        server: DatabaseServer = request.getfixturevalue("site_server")
        schema = new_word()
        with server.connect() as connection:
            create(connection, schema)
        url = f"postgresql://postgres@127.0.0.1:{server.settings['PORT']}/postgres"
        return {"engine": "postgresql", "database_url": url, "database_schema": schema}
    return {}
