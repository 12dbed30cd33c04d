"""A node that operators see."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.config.reader import load
from realtime.node.node import Node
from realtime.operators.observer import NodeObserver
from tests.unit.parts import Clock


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    """A node with the memory engine, in the test's time, and an observer."""
    made = Node(load({"v3_use_offset": True}), observe=NodeObserver)
    await made.start()
    yield made
    await made.stop()
