"""What a server process keeps in memory and has open: see `tests/site/asgi_counting.py`."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.raw_http import open_exchange
from tests.open_files import open_files
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


def count_files(server: Server) -> int:
    """Return how many files and sockets a server has open."""
    return len(open_files(server.pid))


def has_open(server: Server, connection: socket.socket) -> bool:
    """Tell whether the server, or a process of it, has not closed its end of this connection."""
    _, port = connection.getsockname()
    table = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
    sockets = {
        f"socket:[{inode}]"
        for _, _, peer, _, _, _, _, _, _, inode, *_ in map(str.split, table)
        if int(peer.rpartition(":")[2], 16) == port
    }
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    processes = [server.pid, *map(int, children)]
    return any(not sockets.isdisjoint(open_files(process)) for process in processes)


async def left(server: Server) -> Counts:
    """Return what a server process has in memory, and how many files it has open."""
    return {**await account(server, "/left"), "files": count_files(server)}


async def account(server: Server, path: str) -> Counts:
    """Return the account of a server's memory at a path."""
    exchange = await open_exchange(server, "GET", path)
    try:
        await exchange.begin()
        counts: Counts = json.loads(await exchange.rest())
    finally:
        await exchange.close()
    return counts


async def settled(server: Server, is_good: Callable[[Counts], bool]) -> Counts:
    """Wait until the counts are good, and return them."""
    deadline = time.monotonic() + TIMEOUT
    while not is_good(counts := await left(server)):
        assert time.monotonic() < deadline, counts
        await asyncio.sleep(0.5)
    return counts
