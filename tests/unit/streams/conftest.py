"""Fixtures of the tests of streams."""

from __future__ import annotations

import pytest

from tests.unit.parts import Clock
from tests.unit.streams.follower_parts import Line, open_line


@pytest.fixture
async def line(clock: Clock) -> Line:
    """A line on which a stream is followed, in the test's time."""
    line = await open_line()
    await line.follower.start()
    return line
