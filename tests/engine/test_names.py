"""Names of every kind through every operation of every engine: the same answer from each.

Names have a form in UTF-8, because the service refuses others; see live/api/test_strange_names.py.
"""

from __future__ import annotations

import random

import pytest

from realtime.config.database_options import LONGEST_CHANNEL
from tests.engine.bench import Bench
from tests.engine.operations import OF_ALL, OF_SEVERAL_PROCESSES, Operation

NAMES = (
    "a\0b",
    "\0",
    random.Random(1).randbytes(LONGEST_CHANNEL // 2).hex(),  # it cannot be compressed
    "".join(map(chr, random.Random(1).choices(range(0x800, 0xD800), k=LONGEST_CHANNEL // 3))),
    "100%s %(x)s %%",
    '\'; DROP TABLE "x"; -- $$ \\',
    "{schema} {a,b}",
    "a\nb\r\tc",
    "\U0001f600",
    "\uffff\u202e",
    "  ",
    "*?[a-z]",
)


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
