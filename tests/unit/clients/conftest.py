"""Fixtures of tests of clients: a node of the second generation, and two nodes of one service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.clients.map_parts import Reader
from tests.unit.clients.second_parts import OPTIONS, SecondConnection
from tests.unit.memory_cluster import ClusterState
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock
from tests.unit.suspended_engine import ClusterEngine

Connect = Callable[..., Awaitable[SecondConnection]]
OpenMap = Callable[[str], Awaitable[Reader]]


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of `second_node`; `parametrize` it indirectly to add some.

    A module has others in MORE_OPTIONS.
    """
    more = getattr(request.module, "MORE_OPTIONS", {})
    return OPTIONS | more | dict(getattr(request, "param", {}))


@pytest.fixture
async def second_node(clock: Clock, options: dict[str, Any]) -> AsyncIterator[Node]:
    """A node whose clients speak the second generation."""
    made = Node(load(options))
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
def new(second_node: Node) -> Callable[[], SecondConnection]:
    """Open a connection that has sent nothing yet."""
    return lambda: SecondConnection(second_node)


@pytest.fixture
def connect(second_node: Node) -> Connect:
    """Connect a client of a user: `await connect("17")`."""

    async def connect(user: str = "17", **claims: Any) -> SecondConnection:
        connection = SecondConnection(second_node)
        token = connection_token(user, **claims)
        result = await connection.call("connect", token=token)
        assert "client" in result, result
        return connection

    return connect


@pytest.fixture
def reader(connect: Connect) -> OpenMap:
    """A client that reads a map: `await reader("map:a")`."""

    async def reader(channel: str) -> Reader:
        return Reader(await connect(), channel)

    return reader


@pytest.fixture
def state() -> ClusterState:
    """What `nodes` share."""
    return ClusterState()


@pytest.fixture
async def engines(clock: Clock, state: ClusterState) -> list[ClusterEngine]:
    """Those of `nodes`."""
    timers = Timers(asyncio.get_running_loop())
    return [ClusterEngine(timers, state) for _ in range(2)]


@pytest.fixture
async def nodes(
    request: pytest.FixtureRequest, engines: list[ClusterEngine], clock: Clock
) -> AsyncIterator[list[Node]]:
    """Two nodes of one service, with the OPTIONS of the module of the test."""
    made = [Node(load(request.module.OPTIONS), engine) for engine in engines]
    for node in made:
        await node.start()
        await node.idle()
    yield made
    for node in made:
        await stop(node, clock, SHUTDOWN_TIMEOUT)
