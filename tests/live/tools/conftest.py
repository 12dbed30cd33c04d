"""Fixtures of the tests of the management command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pytest
from pytest_django import Settings

from tests.live.tools.command import KEYS, OPTIONS
from tests.live.tools.tools_parts import API_OPTIONS, PREFIX, Console
from tests.processes import run_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server


@pytest.fixture
def own_options(settings: Settings) -> None:
    """This process is a site with the options of the service."""
    settings.REALTIME = {**KEYS, **OPTIONS}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of processes whose database has the table of pending rows."""
    directory = tmp_path_factory.mktemp("migrated")
    environment = {"TEST_DATABASE": str(directory / "site.sqlite3")}
    command = ["-m", "django", "migrate", "realtime_pending", "-v0"]
    settings = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    finished = run_python(command, ROOT, os.environ | settings | environment)
    assert finished.returncode == 0, finished.stderr
    return environment


@pytest.fixture(params=["url", "redis"])
def console(
    request: pytest.FixtureRequest,
    serve: Callable[..., Server],
    redis_server: RedisServer,
) -> Console:
    """Runs a test over HTTP with the memory engine, and through Redis without a URL."""
    if request.param == "url":
        server = serve(**API_OPTIONS)
        return Console(server, API_OPTIONS, ["--url", server.address])
    options = {**API_OPTIONS, "redis_url": redis_server.url, "redis_prefix": PREFIX}
    return Console(serve(**options), options, [])
