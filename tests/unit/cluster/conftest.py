"""Fixtures of the tests of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock
from tests.unit.suspended_engine import ClusterEngine


@pytest.fixture
async def engine(clock: Clock) -> ClusterEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: ClusterEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load({"name": "first"}), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)
