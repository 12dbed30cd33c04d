"""Fixtures of the server API's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.live.api_client import BOTH, start
from tests.server import Server


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    """A shared server, by each of `BOTH` ways to serve the API."""
    return start(serve, request.param)
