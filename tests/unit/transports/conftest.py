"""Nodes, and a session of one, for the tests of transports."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from realtime.node.node import Node
from tests.unit.parts import Clock
from tests.unit.transports.emulation.nodes import Nodes, open_nodes
from tests.unit.transports.emulation.parts import Case, open_node


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    """A node without others."""
    async with open_node(clock) as opened:
        yield opened


@pytest.fixture
async def case(node: Node) -> Case:
    """A session of that node, without a receiver."""
    return Case(node)


@pytest.fixture
async def subscribed(case: Case) -> Case:
    """That session, begun, whose client is subscribed to "a", without a receiver."""
    await case.subscribe()
    return case


@pytest.fixture
async def nodes(clock: Clock) -> AsyncIterator[Nodes]:
    """Two nodes of one service."""
    async with open_nodes(clock) as opened:
        yield opened


@pytest.fixture
async def three(clock: Clock) -> AsyncIterator[Nodes]:
    """Three nodes of one service."""
    async with open_nodes(clock, 3) as opened:
        yield opened
