"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import pytest

from tests.live.configurations import Serve
from tests.live.proxy.application import PATIENT, Application, proxied
from tests.server import Server


@pytest.fixture
def server(serve: Serve, application: Application) -> Server:
    """A server that asks the application everything but refresh, and waits long for answers."""
    return serve(**proxied(application), **PATIENT)
