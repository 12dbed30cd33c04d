"""Every viewer of a live list ends with what a fresh rendering has; `viewers` is the large run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.browser import browsing
from tests.live_pages.viewers import Report, Site, opened, settled
from tests.redis_server import RedisServer

VIEWERS = 6
ROWS = 40
KEPT = 20
"""Publications of the history."""


async def test_lists_are_those_of_a_fresh_rendering_after_cuts_and_a_kill(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    site = await asyncio.to_thread(Site, tmp_path, redis_server, rows=ROWS, kept=KEPT, feed=True)
    try:
        with browsing(tmp_path / "profile") as browser:
            async with opened(site, browser, VIEWERS) as (frames, [one, other]):
                await asyncio.to_thread(site.write, KEPT, 1000, seed=1)
                one.cut()
                other.refuse()  # for longer than the history reaches
                await asyncio.to_thread(site.write, 3 * KEPT, 1000, seed=2)
                other.allow()
                killing = asyncio.to_thread(site.kill, 0)
                writing = asyncio.to_thread(site.write, 3 * KEPT, 100, seed=3)
                await asyncio.gather(killing, writing)
                report = await settled(frames, Report(VIEWERS))
    finally:
        site.stop()

    assert report.wrong == []
    assert report.plain_differs
    assert report.resets >= VIEWERS // 2
    assert report.swaps > 0
