"""The table of faults in docs/redis.md has a row for each fault that is played."""

from __future__ import annotations

import re

from tests.chaos.fault_table import HEAD, PAGE, PLACE
from tests.chaos.faults import FAULTS


def test_every_fault_has_its_row() -> None:
    found = PLACE.search(PAGE.read_text())
    assert found is not None
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in found[0].splitlines()
        if line.startswith("|")
    ]

    assert head == list(HEAD)
    assert [row[0] for row in rows] == [fault.name for fault in FAULTS]
    assert all(re.search(r"\d+\.\d s", row[3]) for row in rows)
    assert not any("BROKEN" in cell for row in rows for cell in row)
