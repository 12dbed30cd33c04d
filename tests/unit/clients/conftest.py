"""Fixtures of the tests of clients of the second generation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS, SecondConnection
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock

Connect = Callable[..., Awaitable[SecondConnection]]


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of `second_node`; `parametrize` it indirectly to add some."""
    return OPTIONS | dict(getattr(request, "param", {}))


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
