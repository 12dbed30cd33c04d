"""Sentinel promotes the replica while publishers and clients are at work over two servers."""

from __future__ import annotations

import pytest

from tests.chaos.faults import FAULTS, play

PLANNED = "planned failover with `redis_wait_replicas`"


async def test_planned_failover_loses_nothing_acknowledged_and_tells_clients(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The old master goes on for ten seconds, and what it accepts then is dropped."""
    (fault,) = [fault for fault in FAULTS if fault.name == PLANNED]

    verdict = (await play(fault, tmp_path_factory)).verdict

    assert verdict.complaints == [], "untold losses, twice, or out of order"
    assert verdict.forgotten == 0, "acknowledged, and not in the history of the new master"
    assert set(verdict.errors) <= {300, 301}
    assert set(verdict.closes) <= {3010}
