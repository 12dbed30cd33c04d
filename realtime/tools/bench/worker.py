"""The connections of one process.

Lines of JSON, one at a time:

    in   the task: places, connections (index and token of each), channel, run, total
    out  when all connections are open or refused: connected, failures, began, ended
    in   any line: all publications are on their way
    out  when nothing has come for `QUIET` seconds: what the connections received

The end of the input ends the process at once: the command is gone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

from realtime.tools.bench.connection import BenchConnection, ConnectionRefused, Place
from realtime.tools.bench.results import ReceivedCounts, Sequence

AT_A_TIME = 50
"""Connections that one process opens at a time."""
TIMEOUT = 20.0
"""Seconds to open one."""
QUIET = 2.0


def _allow_many_connections() -> None:
    try:
        import resource  # not on Windows
    except ImportError:
        return
    # each connection is an open file, of which many systems allow 1024 at first
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _receive(
    connection: BenchConnection, run: str, total: int, received: ReceivedCounts
) -> None:
    """Count the publications that a connection receives, until it ends or is cancelled."""
    sequence = Sequence(received)
    try:
        while True:
            for message in await connection.receive():
                match message:
                    case {
                        "push": {"pub": {"data": {"bench": key, "n": int(number), "at": int(at)}}}
                    }:
                        if key == run and 0 <= number < total:
                            sequence.take(number, (time.monotonic_ns() - at) / 1e9)
    except (ConnectionRefused, OSError):
        received.closed += 1


async def _run(task: dict[str, Any]) -> None:
    places = [Place(*place) for place in task["places"]]
    limit, received, failures = asyncio.Semaphore(AT_A_TIME), ReceivedCounts(), Counter[str]()
    receiving: list[asyncio.Task[None]] = []

    async def open_one(index: int, token: str) -> None:
        async with limit:
            try:
                place = places[index % len(places)]
                connection = await BenchConnection.open(place, token, task["channel"], TIMEOUT)
            except TimeoutError:
                failures[f"no answer within {TIMEOUT:g} s"] += 1
            except (ConnectionRefused, OSError) as error:
                failures[str(error)] += 1
            else:
                work = _receive(connection, task["run"], task["total"], received)
                receiving.append(asyncio.create_task(work))

    line = asyncio.ensure_future(asyncio.to_thread(sys.stdin.readline))
    began = time.monotonic()
    opening = asyncio.gather(*(open_one(*each) for each in task["connections"]))
    await asyncio.wait({opening, line}, return_when=asyncio.FIRST_COMPLETED)
    if line.done():
        return
    await opening
    ended = time.monotonic()
    _write({"connected": len(receiving), "failures": failures, "began": began, "ended": ended})
    if not await line:
        return
    deliveries = -1
    while deliveries != received.deliveries:
        deliveries = received.deliveries
        await asyncio.sleep(QUIET)
    _write(received.encoded())


def _write(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Do the task in the first line of the input."""
    _allow_many_connections()
    asyncio.run(_run(json.loads(sys.stdin.readline())))
