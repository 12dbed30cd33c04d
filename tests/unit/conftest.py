"""Fixtures of the tests of the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node.node import Node
from tests.unit.cluster.direct_parts import Pair, two_nodes
from tests.unit.parts import Clock


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    """The clock of the test's event loop, in the test's hands."""
    loop = asyncio.get_running_loop()
    yield Clock(loop)
    del loop.time


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    """A node with the memory engine, in the test's time."""
    made = Node(load({"v3_use_offset": True}))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def pair(clock: Clock) -> AsyncIterator[Pair]:
    """Two nodes with open inboxes."""
    async with two_nodes(clock, other_open=True) as nodes:
        yield nodes


@pytest.fixture
async def closed(clock: Clock) -> AsyncIterator[Pair]:
    """Two nodes; the inbox of the other one is not open yet."""
    async with two_nodes(clock, other_open=False) as nodes:
        yield nodes
