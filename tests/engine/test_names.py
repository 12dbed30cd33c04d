"""Names of every kind through every operation of every engine: the same answer from each.

Names have a form in UTF-8, because the service refuses others; see live/api/test_strange_names.py.
"""

from __future__ import annotations

import pytest

from tests.engine.bench import Bench
from tests.engine.operations import NAMES, OF_ALL, OF_SEVERAL_PROCESSES, Operation


@pytest.mark.parametrize("operation", OF_ALL, ids=lambda operation: operation.__name__)
async def test_names_are_carried(engine: Bench, operation: Operation) -> None:
    for name in NAMES:
        await operation(engine, name)


@pytest.mark.parametrize(
    "operation", OF_SEVERAL_PROCESSES, ids=lambda operation: operation.__name__
)
async def test_names_are_shared(clustered: Bench, operation: Operation) -> None:
    for name in NAMES:
        await operation(clustered, name)
