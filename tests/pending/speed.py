"""How fast durable publications are: `python -m tests.pending.speed [delivery] [rate]`.

    delivery  a worker commits 200 a second, and publishes 50 a second directly between them
    rate      writers commit 3000 a second, and one relay publishes them

A site serves one client, which notes when each publication comes; the relay is that of the site.
The database is PostgreSQL. Times count from the end of the commit, as the
publisher saw it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.storm import Client, commands
from tests.conftest import connection_token
from tests.database_server import Postgres
from tests.processes import Process, run_python, start_python
from tests.redis_server import RedisServer
from tests.server import ROOT, Server

CHANNELS = [f"orders:{number}" for number in range(8)]
WRITERS = 4
TOGETHER = 10
"""Publications in a transaction of the writers."""
TIMEOUT = 60.0


class Watcher(Client):
    """Notes when each publication came: its data are its name."""

    def __init__(self, greeting: bytes, replies: int) -> None:
        super().__init__(greeting, replies)
        self.came: dict[str, float] = {}
        """Name → Unix seconds."""

    def receive(self, data: Any) -> None:
        self.came[data] = time.time()

    async def has(self, names: Sequence[str]) -> None:
        """Wait until all of these came."""
        async with asyncio.timeout(TIMEOUT):
            while not self.came.keys() >= set(names):
                await asyncio.sleep(0.001)


class Site:
    """A serving process, its database and its Redis."""

    def __init__(self, directory: Path, redis: RedisServer, database: dict[str, Any]) -> None:
        self._directory = directory
        options = {
            "redis_url": redis.url,
            "redis_prefix": directory.name,
            "v3_use_offset": True,
            "namespaces": [{"name": "orders", "history_size": 1000, "history_lifetime": 300}],
        }
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "SERVICE_CONFIG_FILE": str(directory / "config.json"),
            "TEST_DATABASE_SETTINGS": json.dumps(database),
        }
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(options))
        for arguments in (["realtime_pending", "zero"], []):  # another site may have left rows
            migrate = ["manage.py", "migrate", *arguments, "-v0"]
            done = run_python(migrate, ROOT, self.environment, timeout=TIMEOUT)
            assert done.returncode == 0, done.stderr
        self.server = Server(directory, options, server="uvicorn", environment=self.environment)

    def start(self, role: str, **arguments: Any) -> tuple[Process, Path]:
        """Start an actor. Returns it, and the file of its output."""
        path = self._directory / f"{role}-{time.monotonic_ns()}"
        command = ["-m", "tests.pending.actor", role, json.dumps(arguments)]
        with path.open("wb") as output, open(os.devnull, "rb") as nothing:
            streams = (nothing, output, sys.stderr.buffer)
            return start_python(command, ROOT, self.environment, streams), path

    @asynccontextmanager
    async def watcher(self) -> AsyncIterator[Watcher]:
        """A client that is subscribed to all channels."""
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("connect", {"token": connection_token("watcher")})
        ]
        wanted += [("subscribe", {"channel": channel}) for channel in CHANNELS]
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_connection(
            lambda: Watcher(commands(*wanted), len(wanted)), "127.0.0.1", self.server.port
        )
        try:
            await client.ready
            yield client
        finally:
            transport.close()

    async def commits(self, *publishers: dict[str, Any]) -> dict[str, float]:
        """Run publishers to their end. Returns name → when its commit was over."""
        actors = [self.start("pace", **publisher) for publisher in publishers]
        over: dict[str, float] = {}
        for process, path in actors:
            assert await asyncio.to_thread(process.wait) == 0
            over |= json.loads(path.read_text())
        return over


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the longest."""
    found = sorted(seconds)
    parts = {"p50": len(found) // 2, "p99": len(found) * 99 // 100, "max": len(found) - 1}
    return {f"{name}_ms": round(found[place] * 1000, 1) for name, place in parts.items()}


async def delivery(site: Site, seconds: float) -> dict[str, Any]:
    async with site.watcher() as watcher:
        over = await site.commits(
            {"channels": CHANNELS, "rate": 200, "seconds": seconds, "direct_every": 4}
        )
        await watcher.has(list(over))
    late = {
        way: milliseconds([watcher.came[name] - over[name] for name in over if way in name])
        for way in ("direct", "durable")
    }
    more = late["durable"]["p50_ms"] - late["direct"]["p50_ms"]
    return {**late, "median_more_ms": round(more, 1)}


async def rate(site: Site, seconds: float) -> dict[str, Any]:
    each = {"channels": CHANNELS, "rate": 3000 / WRITERS, "seconds": seconds, "together": TOGETHER}
    async with site.watcher() as watcher:
        over = await site.commits(*[each] * WRITERS)
        await watcher.has(list(over))
    first, last = min(over.values()), max(over.values())
    came = [watcher.came[name] for name in over]
    return {
        "committed": len(over),
        "committed_per_s": round(len(over) / (last - first)),
        "delivered_per_s": round(len(over) / (max(came) - min(came))),
        "last_after_ms": round((max(came) - last) * 1000, 1),
        **milliseconds([watcher.came[name] - over[name] for name in over]),
    }


@contextmanager
def postgres() -> Iterator[dict[str, Any]]:
    database = Postgres()
    try:
        database.create()
        database.start()
        yield database.settings
    finally:
        database.discard()


def main() -> None:
    """Measure what the command line asks for; print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", help="delivery, rate; both of them")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    what = options.what or ["delivery", "rate"]

    def say(name: str, figures: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"what": name, **figures}) + "\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as name, postgres() as settings:
        directory = Path(name)
        redis = RedisServer(directory / "redis").start()
        try:
            site = Site(directory / "postgresql", redis, settings)
            try:
                if "delivery" in what:
                    say("delivery", asyncio.run(delivery(site, options.seconds)))
                if "rate" in what:
                    say("rate", asyncio.run(rate(site, options.seconds)))
            finally:
                site.server.stop()
        finally:
            redis.kill()


if __name__ == "__main__":
    main()
