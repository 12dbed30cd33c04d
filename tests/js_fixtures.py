"""Fixtures of the tests with the published JavaScript client; a plugin of those modules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.js_builds import USUAL, Build
from tests.js_client import (
    OPTIONS,
    Driver,
    FindNode,
    JsClient,
    NewClient,
    open_driver,
)
from tests.js_node import NodeProcess, Nodes, find_node
from tests.server import Server
from tests.tcp_proxy import TcpProxy


@pytest.fixture(params=USUAL, ids=[build.name for build in USUAL])
def build(request: pytest.FixtureRequest) -> Build:
    """Runs a test once per build of the client; see also the marks in `js_builds`."""
    found: Build = request.param
    return found


@pytest.fixture
def options(build: Build) -> dict[str, Any]:
    """The options of a server for this build."""
    return OPTIONS | {"v3_use_offset": build.use_offset}


@pytest.fixture
def server(serve: Callable[..., Server], options: dict[str, Any]) -> Server:
    """A server for this build, shared between tests."""
    return serve(**options)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip here rather than in the fixture: the report has one line then, not one a test."""
    if isinstance(item, pytest.Function) and "node_process" in item.fixturenames:
        find_node()


@pytest.fixture(scope="session")
def node_process() -> Iterator[FindNode]:
    """Find the Node process for a build, shared by all tests: `node_process(build)`."""
    path = find_node()
    nodes = Nodes()

    def find(build: Build) -> NodeProcess:
        return nodes.find(path, as_in_browsers=build.as_in_browsers)

    yield find
    nodes.stop()


@pytest.fixture
async def driver(node_process: FindNode, build: Build) -> AsyncIterator[Driver]:
    """Holds this test's clients."""
    async with open_driver(node_process(build)) as opened:
        yield opened


@pytest.fixture
def new_client(driver: Driver, build: Build, server: Server) -> NewClient:
    """Make a client that is not connected yet: `await new_client(user="17")`.

    `through` is a proxy; `at` another server. Further arguments are options of the client.
    """

    async def new_client(
        user: str = "17",
        *,
        token: str | None = None,
        through: TcpProxy | None = None,
        at: Server | None = None,
        info: object = None,
        **client_options: Any,
    ) -> JsClient:
        url = through.url if through is not None else (at or server).socket
        return await driver.client(
            build, url, token=token or connection_token(user, info=info), **client_options
        )

    return new_client


@pytest.fixture
def connect_js(new_client: NewClient) -> NewClient:
    """As `new_client`, connected."""

    async def connect_js(*arguments: Any, **options: Any) -> JsClient:
        client = await new_client(*arguments, **options)
        await client.connect()
        return client

    return connect_js
