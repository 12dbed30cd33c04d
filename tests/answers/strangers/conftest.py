"""A site whose answers strangers' clients read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import new_word, start_server
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

NAMESPACES = [
    {
        "name": "script",
        "history_size": 100,
        "history_lifetime": 600,
        "allow_subscribe_for_client": True,
        "allow_subscribe_for_anonymous": True,
    }
]

Play = Callable[..., Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A site with answers, over the memory engine, with its workers in the serving process."""
    server = start_server(
        tmp_path_factory,
        environment=_migrated(tmp_path_factory),
        namespaces=NAMESPACES,
        client_anonymous=True,
    )
    yield server
    server.discard()


@pytest.fixture(scope="module")
def site_with_celery(
    tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer
) -> Iterator[Server]:
    """A site with answers, over Redis, with a worker of Celery that has two processes."""
    environment = _migrated(tmp_path_factory) | {
        "TEST_BROKER": redis_server.url.removesuffix("0") + "1"
    }
    options: dict[str, Any] = {
        "namespaces": NAMESPACES,
        "redis_url": redis_server.url,
        "redis_prefix": new_word(),
        "client_anonymous": True,
    }
    server = start_server(tmp_path_factory, environment=environment, **options)
    config = tmp_path_factory.mktemp("worker") / "config.json"
    config.write_text(json.dumps(options))
    environment |= {"DJANGO_SETTINGS_MODULE": "tests.settings", "SERVICE_CONFIG_FILE": str(config)}
    celery = [sys.executable, "-m", "celery", "--app", "tests.site.tasks"]
    worker = subprocess.Popen(
        [*celery, "worker", "--pool", "prefork", "--concurrency", "2", "--without-mingle"],
        cwd=ROOT,
        env=os.environ | environment,
        start_new_session=True,
    )
    yield server
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    server.discard()


def _migrated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a site that has a database of its own."""
    database = tmp_path_factory.mktemp("answers") / "site.sqlite3"
    environment = {"TEST_DATABASE": str(database), "TEST_APPS": "realtime.answers"}
    settings = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"} | environment
    done = run_python(["manage.py", "migrate", "-v0"], ROOT, settings, timeout=60)
    assert done.returncode == 0, done.stderr
    return environment


@pytest.fixture
def play() -> Play:
    """Run a script of tests/js: `play("ag_ui.mjs", *arguments)`. Returns what it prints."""
    node = find_node()
    require_packages("@ag-ui/client")  # installed with the others

    def play(script: str, *arguments: str) -> Any:
        done = subprocess.run(
            [node, script, *arguments],
            cwd=DIRECTORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return play
