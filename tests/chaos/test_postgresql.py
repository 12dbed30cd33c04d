"""A real PostgreSQL crashes, and another one takes over that lacks publications.

Clients are told, and lose nothing else. `make faults` plays the other faults.
"""

from __future__ import annotations

import pytest

from tests.chaos.faults import play
from tests.chaos.postgresql import ChaosPostgres
from tests.chaos.postgresql_faults import FAULTS
from tests.database_starting import require_server

PLAYED = {fault.name: fault for fault in FAULTS}

INSUFFICIENT_STATE = 3010


@pytest.mark.parametrize(
    ("name", "forgets"),
    [
        ("crash (`-m immediate`), 3 s away", False),
        ("server killed, replica without the last second", True),
    ],
)
async def test_fault_of_postgresql_loses_nothing_untold(
    tmp_path_factory: pytest.TempPathFactory, name: str, forgets: bool
) -> None:
    require_server(ChaosPostgres)
    verdict = (await play(PLAYED[name], tmp_path_factory)).verdict

    assert verdict.complaints == [], "untold losses, twice, or out of order; presence, lists"
    assert bool(verdict.forgotten) is forgets, "acknowledged, and not in history"
    assert set(verdict.errors) <= {300, 301}  # docs/protocol.md, 5.2
    assert set(verdict.closes) == ({INSUFFICIENT_STATE} if forgets else set())
    assert set(verdict.recovered) == ({False} if forgets else set())
