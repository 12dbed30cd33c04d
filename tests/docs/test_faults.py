"""The table of faults in the page of an engine has a row for each fault that is played."""

from __future__ import annotations

import re

import pytest

from tests.chaos.fault_table import DOCS, FAULTS, HEAD, PLACE


@pytest.mark.parametrize("engine", FAULTS)
def test_every_fault_has_its_row(engine: str) -> None:
    found = PLACE.search((DOCS / f"{engine}.md").read_text())
    assert found is not None
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in found[0].splitlines()
        if line.startswith("|")
    ]

    assert head == list(HEAD)
    assert [row[0] for row in rows] == [fault.name for fault in FAULTS[engine]]
    assert all(re.search(r"\d+\.\d s", row[3]) for row in rows)
    assert not any("BROKEN" in cell for row in rows for cell in row)
