"""Fixtures of the tests of the management command."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import Settings

from tests.live.console.command import KEYS, OPTIONS
from tests.live.console.console_parts import API_OPTIONS, PREFIX, Console
from tests.redis_server import RedisServer
from tests.server import Server


@pytest.fixture
def own_options(settings: Settings) -> None:
    """This process is a site with the options of the service."""
    settings.REALTIME = {**KEYS, **OPTIONS}


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
