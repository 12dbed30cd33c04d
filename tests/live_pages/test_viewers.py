"""Every viewer of a live list ends with what a fresh rendering has; `viewers` is the large run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.browser import browsing
from tests.live_pages.frames import opened
from tests.live_pages.site import Site
from tests.live_pages.viewers import FEED, PLAIN, settled
from tests.redis_server import RedisServer

VIEWERS = 6
ROWS = 40
KEPT = 20
"""Publications of the history."""
RATE = 50
MOMENT = 1.5
"""Seconds; more changes than the history keeps."""


async def test_lists_are_those_of_a_fresh_rendering_after_cuts_and_kills(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "redis", persistent=True).start()
    site = await asyncio.to_thread(
        Site, tmp_path, redis, rows=ROWS, kept=KEPT, rate=RATE, feed=True, durable=True
    )
    pages = (PLAIN, FEED)
    try:
        with browsing(tmp_path / "profile") as browser:
            opening = opened(browser, site.ports, VIEWERS, pages, watched=True)
            async with opening as (frames, [one, other]):
                one.cut()
                other.refuse()  # for longer than the history reaches
                site.begin_writing(MOMENT, seed=1)
                died = [await asyncio.to_thread(site.spring, "commit")]
                await asyncio.to_thread(site.finish_writing)
                other.allow()
                site.begin_writing(MOMENT, seed=2)
                died.append(await asyncio.to_thread(site.spring, "_settle"))
                redis.kill()
                await asyncio.to_thread(redis.start)
                await asyncio.to_thread(site.finish_writing)
                look, _ = await settled(frames, site)
    finally:
        site.stop()
        redis.stop()

    assert look.wrong == []
    assert look.mistakes == []
    assert site.pending() == 0
    assert died == [True, True]
    assert look.plain_differs
    assert look.resets >= VIEWERS // 2
    assert look.swaps > 0
