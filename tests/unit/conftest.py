"""Fixtures of the tests of the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.parts import Clock


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    """The clock of the test's event loop, in the test's hands."""
    loop = asyncio.get_running_loop()
    yield Clock(loop)
    del loop.time  # type: ignore[method-assign]
