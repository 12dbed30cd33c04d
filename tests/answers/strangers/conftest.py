"""A site whose answers strangers' clients read."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import start_server
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.processes import run_python
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
    database = tmp_path_factory.mktemp("answers") / "site.sqlite3"
    environment = {"TEST_DATABASE": str(database), "TEST_APPS": "realtime.answers"}
    settings = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"} | environment
    done = run_python(["manage.py", "migrate", "-v0"], ROOT, settings, timeout=60)
    assert done.returncode == 0, done.stderr
    server = start_server(
        tmp_path_factory, environment=environment, namespaces=NAMESPACES, client_anonymous=True
    )
    yield server
    server.discard()


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
