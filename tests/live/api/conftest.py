"""Fixtures of the server API's tests."""

from __future__ import annotations

import pytest

from tests.live.api_client import BOTH, start
from tests.live.configurations import Serve
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Serve) -> Server:
    """A shared server, by each of `BOTH` ways to serve the API."""
    return start(serve, request.param)
