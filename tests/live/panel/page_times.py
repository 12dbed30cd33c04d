"""How long the panel's pages take: `python -m tests.live.panel.page_times [CONNECTIONS] [--redis]`.

Opens so many connections (10 000), each subscribed to a channel of its own, to one server of the
ready site, and asks for each page a few times. Prints the median and the best time in milliseconds.
Not a part of the suite: what it measures depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from realtime.auth import issue
from realtime.config.reader import load
from realtime.tools.bench.connection import Connection, Place, Refused
from tests.live.panel_servers import PanelServer, make_site
from tests.live.panel_site import PASSWORD, sign_in
from tests.panel.paths import page_path
from tests.redis_server import RedisServer
from tests.server import SECRET

AT_A_TIME = 50
ROUNDS = 15


async def hold(server: PanelServer, number: int) -> list[asyncio.Task[None]]:
    """Open connections, each with a user and a channel of its own, and keep them open."""
    address = urlsplit(server.socket)
    place = Place(address.hostname or "", address.port or 0, address.path, False)
    config = load({"token_hmac_secret_key": SECRET})
    limit = asyncio.Semaphore(AT_A_TIME)
    tasks: list[asyncio.Task[None]] = []

    async def receive(connection: Connection) -> None:
        try:
            while True:
                await connection.receive()
        except (Refused, OSError):
            pass

    async def open_one(index: int) -> None:
        async with limit:
            token = issue.connection_token(config, f"user-{index}")
            connection = await Connection.open(place, token, f"demo:channel-{index}", 60)
            tasks.append(asyncio.create_task(receive(connection)))

    await asyncio.gather(*(open_one(index) for index in range(number)))
    return tasks


def times(browser: httpx.Client, path: str) -> list[float]:
    """Ask for a page, and return the milliseconds of each time, the first one left out."""
    found = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        response = browser.get(path)
        found.append((time.perf_counter() - began) * 1000)
        response.raise_for_status()
    return found[1:]


def measure(server: PanelServer) -> None:
    """Print the times of the pages."""
    with closing(sign_in(server.address, PASSWORD)) as browser:
        node = browser.get(page_path("overview")).text.partition("?node=")[2].partition('"')[0]
        pages = {
            "overview": page_path("overview"),
            "overview, its numbers": page_path("overview") + "data/",
            "overview, its charts": page_path("overview") + "hour/",
            "node": page_path("node", node=node),
            "events": page_path("events"),
            "channels": page_path("channels"),
            "channels, found": page_path("channels", q="channel-99"),
            "channels, busiest": page_path("channels", sort="subscribers"),
            "channel": page_path("channel", channel="demo:channel-7"),
            "user": page_path("user", user="user-7"),
            "publish": page_path("publication"),
            "namespaces": page_path("namespaces"),
            "console": page_path("console"),
        }
        for name, path in pages.items():
            found = times(browser, path)
            sys.stdout.write(f"{name:24} {statistics.median(found):7.0f} {min(found):7.0f}\n")


async def main() -> None:
    """Start the server, open the connections, measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("connections", nargs="?", type=int, default=10_000)
    parser.add_argument("--redis", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "site").mkdir()
        (directory / "log").mkdir()
        site = make_site(directory / "site")
        redis = RedisServer(directory / "redis").start() if options.redis else None
        server = PanelServer(site, directory / "log", redis_url=redis.url if redis else "")
        try:
            tasks = await hold(server, options.connections)
            sys.stdout.write(f"{len(tasks)} connections; milliseconds: median, best\n")
            await asyncio.to_thread(measure, server)
            for task in tasks:
                task.cancel()
        finally:
            server.discard()
            if redis is not None:
                redis.kill()


if __name__ == "__main__":
    asyncio.run(main())
