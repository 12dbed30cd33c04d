"""A real Redis is emptied, real Sentinels choose another: clients are told, and lose nothing else.

The simulation plays what else goes wrong with Redis.
"""

from __future__ import annotations

import pytest

from tests.chaos.faults import FEW, play
from tests.chaos.redis_faults import FAULTS

PLAYED = {fault.name: fault for fault in FAULTS}

INSUFFICIENT_STATE = 3010


@pytest.mark.parametrize(
    ("name", "forgets"),
    [
        ("Redis killed, 3 s away, empty afterwards", True),
        # the old master goes on for ten seconds, and what it accepts then is dropped
        ("planned failover with `redis_wait_replicas`", False),
    ],
)
async def test_fault_of_redis_loses_nothing_untold(
    tmp_path_factory: pytest.TempPathFactory, name: str, forgets: bool
) -> None:
    verdict = (await play(PLAYED[name], tmp_path_factory, **FEW)).verdict

    assert verdict.complaints == [], "untold losses, twice, or out of order"
    assert bool(verdict.forgotten) is forgets, "acknowledged, and not in history"
    assert set(verdict.errors) <= {300, 301}  # docs/protocol.md, 5.2
    assert set(verdict.closes) <= {INSUFFICIENT_STATE}
    if forgets:
        assert set(verdict.closes) == {INSUFFICIENT_STATE}
        assert set(verdict.recovered) == {False}
