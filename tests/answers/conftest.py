"""Options of the tests of answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from realtime.config import sources
from tests.answers.installing import installed
from tests.conftest import start_server
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

CHAT = {
    "name": "chat",
    "history_size": 100,
    "history_lifetime": 600,
    "allow_publish_for_client": True,
}


@pytest.fixture
def over_redis(redis_server: RedisServer, unique: str) -> Iterator[None]:
    """This process is a worker beside a service with Redis."""
    sources.configuration.override(
        redis_url=redis_server.url, redis_prefix=unique, namespaces=[CHAT], answers_per_user=3
    )
    with installed():
        yield
    sources.configuration.override()


@pytest.fixture
def environment(redis_server: RedisServer, unique: str, tmp_path: Path) -> dict[str, str]:
    """The environment of every process of the site."""
    config = tmp_path / "worker.json"
    options = {"redis_url": redis_server.url, "redis_prefix": unique, "namespaces": [CHAT]}
    config.write_text(json.dumps(options))
    made = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_DATABASE": str(tmp_path / "site.sqlite3"),
        "TEST_APPS": "realtime.answers",
        "SERVICE_CONFIG_FILE": str(config),
    }
    migrate = ["manage.py", "migrate", "-v0", "--skip-checks"]
    run_python(migrate, ROOT, os.environ | made).check_returncode()
    return made


OPEN = {
    "name": "chat",
    "history_size": 100,
    "history_lifetime": 600,
    "allow_subscribe_for_anonymous": True,
}
CLOSED = {"name": "closed", "history_size": 100, "history_lifetime": 600}


@pytest.fixture(scope="module", params=["daphne", "uvicorn"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A site with answers, over the memory engine, with its workers in the serving process."""
    database = tmp_path_factory.mktemp("answers") / "site.sqlite3"
    environment = {"TEST_DATABASE": str(database), "TEST_APPS": "realtime.answers"}
    settings = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"} | environment
    done = run_python(["manage.py", "migrate", "-v0"], ROOT, settings, timeout=60)
    assert done.returncode == 0, done.stderr
    server = start_server(
        tmp_path_factory,
        server=request.param,
        environment=environment,
        namespaces=[OPEN, CLOSED],
        client_anonymous=True,
    )
    yield server
    server.discard()
