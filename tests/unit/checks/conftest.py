"""Fixtures of the tests of system checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from realtime.hooks.registry import registry


@pytest.fixture
def functions() -> Iterator[None]:
    """Functions that a test registers are gone when it ends."""
    before = list(registry.subscribe), list(registry.publish), list(registry.map_put)
    yield
    registry.subscribe[:], registry.publish[:], registry.map_put[:] = before
