"""Fixtures of the tests of the node."""

from __future__ import annotations

import asyncio

import pytest

from realtime.node.outbox import Flusher
from realtime.timers import Timers
from tests.unit.parts import Clock
from tests.unit.suspended_engine import ClusterEngine


@pytest.fixture
async def flusher() -> Flusher:
    return Flusher(asyncio.get_running_loop())


@pytest.fixture
async def engine(clock: Clock) -> ClusterEngine:
    """An engine of a cluster, whose calls a test holds."""
    return ClusterEngine(Timers(asyncio.get_running_loop()))
