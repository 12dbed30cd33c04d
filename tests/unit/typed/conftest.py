"""A site without declarations, for tests that declare types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from realtime.config import sources
from realtime.typed.declarations import Declarations, declarations


@pytest.fixture(autouse=True)
def site() -> Iterator[Declarations]:
    """The declarations of the site: none, and what the test declares is forgotten afterwards."""
    before = declarations.all
    declarations.replace([])
    yield declarations
    declarations.replace(before)
    sources.configuration.declare(declarations if before else None)
