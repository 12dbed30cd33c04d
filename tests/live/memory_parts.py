"""What a server process keeps in memory and has open: see `tests/site/asgi_counting.py`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.raw_http import open_exchange
from tests.server import Server

APPLICATION = "tests.site.asgi_counting:application"
"""The test site with an account of its memory."""
TIMEOUT = 60.0
"""Seconds until all clients are forgotten, on a busy machine."""

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="what a process has open is read from /proc"
)

Counts = dict[str, int]
"""Kind of object → how many there are; also "tasks", "blocks" of memory, "files"."""


def open_files(server: Server) -> int:
    """Files and sockets a server has open."""
    return len(os.listdir(f"/proc/{server.pid}/fd"))


async def left(server: Server) -> Counts:
    """Return what a server process has in memory, and how many files it has open."""
    exchange = await open_exchange(server, "GET", "/left")
    try:
        await exchange.begin()
        counts: Counts = json.loads(await exchange.rest())
    finally:
        await exchange.close()
    return {**counts, "files": open_files(server)}


async def settled(server: Server, is_good: Callable[[Counts], bool]) -> Counts:
    """Wait until the counts are good, and return them."""
    deadline = time.monotonic() + TIMEOUT
    while not is_good(counts := await left(server)):
        assert time.monotonic() < deadline, counts
        await asyncio.sleep(0.5)
    return counts
