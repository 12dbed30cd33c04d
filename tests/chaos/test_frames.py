"""Malformed frames at a real server: canaries of both generations and formats go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.frames import play, start


@pytest.mark.parametrize("kind", ["daphne", "uvicorn"])
async def test_canaries_live_among_malformed_frames(tmp_path: Path, kind: str) -> None:
    server = start(tmp_path, kind)
    try:
        report = await play(server, 100, seed=15)
    finally:
        server.stop()

    assert report["faults"] == []
    assert report["frames"] == 2 * 100
