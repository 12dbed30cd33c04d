"""Restart workers one after another under load: `python -m tests.chaos.rolling 4 2000`.

The arguments are the number of workers and of clients for each of them, then "postgresql" for this
engine in place of Redis. Prints what happened, and
fails if a client misses a publication, or gets one twice or out of order.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.chaos.command import serving
from tests.chaos.harness import OPTIONS, Chaos, chaos
from tests.chaos.publishers import eventually
from tests.server import Server

CLIENTS_OF_A_CHANNEL = 20
PUBLICATIONS_PER_SECOND = 200
PATIENCE = 300.0
"""Seconds for what takes long with thousands of clients on a busy machine."""
RECONNECTS_PER_SECOND = 100
"""To the other workers, while one is restarted."""

_SERVES = re.compile(r"^Worker (\d+) serves$", re.MULTILINE)


def workers_of(server: Server) -> list[int]:
    """The process IDs of all workers that have served, in order."""
    return [int(pid) for pid in _SERVES.findall(server.log)]


@asynccontextmanager
async def crowd(server: Server, clients: int) -> AsyncIterator[list[Chaos]]:
    """Clients in many channels, 20 in each, and a publisher for each channel."""
    channels = clients // CLIENTS_OF_A_CHANNEL
    async with AsyncExitStack() as stack:
        groups = []
        for number in range(channels):
            group = chaos(
                [server],
                [f"rec:{number}"],
                publishers=1,
                subscribers=CLIENTS_OF_A_CHANNEL,
                pause=channels / PUBLICATIONS_PER_SECOND,
            )
            groups.append(await stack.enter_async_context(group))
        yield groups


async def restart(server: Server, groups: list[Chaos], workers: int) -> float:
    """Restart all workers while everybody publishes, and judge. Returns the seconds it took."""
    for group in groups:
        group.publishers.start()
        await asyncio.sleep(1 / PUBLICATIONS_PER_SECOND)  # spread over the pause of each
    await asyncio.gather(*(group.publishers.progress(1, PATIENCE) for group in groups))

    began = time.monotonic()
    os.kill(server.pid, signal.SIGHUP)
    await eventually(lambda: "All workers are new" in server.log, "new workers", PATIENCE)
    seconds = time.monotonic() - began

    await asyncio.gather(*(group.subscribers.live(PATIENCE) for group in groups))
    await asyncio.gather(*(group.settle(PATIENCE) for group in groups))
    assert len(set(workers_of(server))) == 2 * workers, server.log
    return seconds


def options(clients: int) -> Mapping[str, Any]:
    """The options of a service with so many clients at each worker."""
    return {**OPTIONS, "drain_seconds": max(1.0, clients / RECONNECTS_PER_SECOND)}


def summary(groups: list[Chaos], workers: int, seconds: float) -> str:
    """What happened during a restart of all workers, in which nothing was lost."""
    published = sum(len(one.acknowledged) for group in groups for one in group.publishers.all)
    failed = [failure.error for group in groups for failure in group.publishers.failures]
    closes = Counter(code for group in groups for code in group.subscribers.closes)
    recovered = Counter(said for group in groups for said in group.subscribers.recovered)
    clients = sum(len(group.subscribers.all) for group in groups)
    return (
        f"{workers} workers with {clients} clients in {len(groups)} channels restarted in"
        f" {seconds:.0f} s; publications: {published} acknowledged, {len(failed)} not"
        f" {sorted(set(failed))}; clients closed, by code: {dict(closes)}; recoveries:"
        f" {recovered[True]}, failed {recovered[False]}; nothing lost, nothing twice"
    )


async def main(workers: int, clients: int, engine: str) -> None:
    """Play it once, and print what happened."""
    given = options(clients)
    arguments = ["--workers", str(workers)]
    with serving(given, "realtime", engine=engine, arguments=arguments) as [server]:
        async with crowd(server, workers * clients) as groups:
            seconds = await restart(server, groups, workers)
            print(summary(groups, workers, seconds))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), [*sys.argv, "redis"][3]))
