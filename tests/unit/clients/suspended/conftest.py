"""A node whose engine a test can suspend, and clients of that node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.node.node_parts import EVERYTHING, Connection
from tests.unit.parts import Clock, eventually
from tests.unit.suspended_engine import SuspendedEngine

Open = Callable[..., Any]

STEPS = ["subscribe", "presence.add", "position"]
"""What the engine is asked while a client subscribes."""


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return SuspendedEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: SuspendedEngine) -> AsyncIterator[Node]:
    """A node on that engine, with the clock of the test."""
    made = Node(load(EVERYTHING), engine)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def connect(node: Node) -> Open:
    """Connect a client of user 17."""

    async def connect(**claims: Any) -> Connection:
        connection = Connection(node)
        await connection.say(1, 0, token=connection_token("17", **claims))
        await eventually(lambda: connection.reply(1) is not None)
        return connection

    return connect
