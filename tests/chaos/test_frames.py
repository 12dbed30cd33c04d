"""Malformed frames at a real server: canaries of both generations and formats go on."""

from __future__ import annotations

import pytest

from tests.chaos.command import serving
from tests.chaos.frames import OPTIONS, QUIET, play


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_canaries_live_among_malformed_frames(kind: str) -> None:
    with serving(OPTIONS, kind, arguments=QUIET[kind]) as [server]:
        report = await play(server, 100, seed=15)
    assert report["faults"] == []
    assert report["frames"] == 2 * 100
