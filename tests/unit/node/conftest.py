"""Fixtures of the tests of the node."""

from __future__ import annotations

import asyncio

import pytest

from realtime.node.outbox import Flusher


@pytest.fixture
async def flusher() -> Flusher:
    return Flusher(asyncio.get_running_loop())
