"""Runners for the tests of hooks."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from realtime.hooks.runner import Runner
from tests.unit.hooks.runners import TIMEOUT, WORKERS


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    """A runner whose functions have time enough."""
    made = Runner(WORKERS, TIMEOUT)
    yield made
    await made.close()


@pytest.fixture
async def impatient() -> AsyncIterator[Runner]:
    """A runner whose functions have little time."""
    made = Runner(WORKERS, 0.05)
    yield made
    await made.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What threads wait for; opened when the test ends, so that they end too."""
    event = threading.Event()
    yield event
    event.set()
