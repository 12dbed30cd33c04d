"""Fixtures of the tests of endpoints."""

from __future__ import annotations

import pytest

from tests.live.configurations import Connect, Serve
from tests.live.proxy.application import Application, proxied
from tests.protocol_client import ProtocolClient
from tests.server import Server


@pytest.fixture
def server(serve: Serve, application: Application) -> Server:
    """A server that asks the application everything but refresh."""
    return serve(**proxied(application))


@pytest.fixture
async def client(server: Server, connect: Connect) -> ProtocolClient:
    """A client of that server, connected by a token."""
    return await connect(server)


@pytest.fixture
async def newcomer(server: Server, connect: Connect) -> ProtocolClient:
    """A client of that server that has not sent its connect command."""
    return await connect(server, connected=False)
