"""Maps while nodes die, Redis restarts and connections are cut: a small `tests.chaos.maps`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.maps import FIRST_COME, INCREMENT, Scene, expire, play, run_all, staged


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with staged(tmp_path, nodes=2) as made:
        yield made


async def test_each_map_is_the_map_of_the_server_after_faults(scene: Scene) -> None:
    verdict = await play(scene, keys=250, puts=60, joiners=9, seconds=6)

    assert verdict.complaints == []
    assert verdict.counts["recoveries"] > 0
    assert verdict.counts["removals"] > 0
    assert verdict.puts > verdict.failed


async def test_entries_of_a_killed_node_are_removed_once(scene: Scene) -> None:
    late = await expire(scene, 20)

    assert late < 10  # seconds; two on a machine that is not busy
    assert [client.complaints for client in scene.clients] == [[], []]
    assert {client.counts["removals"] for client in scene.clients} == {20}


async def test_processes_take_one_key_and_lose_no_increment(scene: Scene) -> None:
    first = await asyncio.to_thread(run_all, scene, FIRST_COME, 4)
    assert sorted(first) == ["kept", *["key_exists"] * 3][::-1] or first.count("kept") == 1
    await asyncio.to_thread(run_all, scene, INCREMENT.format(number=100), 3)
    assert (await scene.state("kept:1"))["counter"] == 300
