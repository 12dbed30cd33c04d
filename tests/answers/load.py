"""Many answers at once: `python -m tests.answers.load [ANSWERS] [PROCESSES] [SECONDS]`.

Workers write answers, five pieces of text a second each, into a service over Redis; one reader
listens to each answer. Prints how many readers have the whole text, the time from `write` to the
reader (milliseconds), and the CPU of a worker for each `write` (microseconds).
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from tests.redis_server import RedisServer
from tests.server import ROOT

PACE = 0.2
"""Seconds between two pieces of text of an answer."""


def settings(redis: str, database: str) -> dict[str, str]:
    made = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_APPS": "realtime.answers",
        "TEST_DATABASE": database,
        "SERVICE_REDIS_URL": redis,
        "SERVICE_REDIS_PREFIX": "load",
        "SERVICE_NAMESPACES": json.dumps([{"name": "chat"}]),
    }
    return os.environ | made


async def write(answers: int, seconds: float) -> None:
    """The work of one worker. Prints its IDs, waits for a line, and prints the CPU of a write."""
    import django

    django.setup()
    from realtime.answers import aanswer, begin

    rows = [
        await asyncio.to_thread(begin, f"chat:{number}", form="text", if_busy="beside")
        for number in range(answers)
    ]
    print(json.dumps([str(row.pk) for row in rows]), flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.readline)
    used = writes = 0.0

    async def one(row: Any, wait: float) -> None:
        nonlocal used, writes
        await asyncio.sleep(wait)
        async with aanswer(id=row.pk) as a:
            until, count = time.time() + seconds, 0
            while time.time() < until:
                before = time.thread_time()
                a.write(f"{count}:{time.time():.4f} ")
                used += time.thread_time() - before
                writes += 1
                count += 1
                await asyncio.sleep(PACE)

    await asyncio.gather(*(one(row, number * PACE / answers) for number, row in enumerate(rows)))
    total = time.process_time()
    print(json.dumps([used / writes * 1e6, total / writes * 1e6]), flush=True)  # noqa: T201


async def read(ids: list[str], delays: list[float]) -> int:
    """Listen to answers. Return how many have ended whole."""
    from realtime import listen

    async def one(answer_id: str) -> bool:
        async with aclosing(listen(f"answer:{answer_id}", since=0)) as publications:
            numbers: list[int] = []
            async for each in publications:
                if "end" in each.tags:
                    return each.tags["end"] == "complete" and numbers == [*range(len(numbers))]
                words = [word.split(":") for word in each.data.split()]
                delays.append(time.time() - float(words[0][1]))
                numbers += [int(number) for number, _ in words]
        return False

    return sum(await asyncio.gather(*map(one, ids)))


@contextmanager
def no_connections() -> Iterator[None]:
    yield


async def serve(workers: list[subprocess.Popen[str]]) -> dict[str, Any]:
    from realtime.serving import serving

    await serving.start(no_connections)
    ids = [each for worker in workers for each in json.loads(await _line(worker))]
    delays: list[float] = []
    reading = asyncio.ensure_future(read(ids, delays))
    await asyncio.sleep(1)
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    whole = await reading
    costs = [json.loads(await _line(worker)) for worker in workers]
    await serving.stop()
    ordered = sorted(delays)
    return {
        "answers": len(ids),
        "whole": whole,
        "p50": round(statistics.median(ordered) * 1e3),
        "p99": round(ordered[int(len(ordered) * 0.99)] * 1e3),
        "write": round(statistics.mean(cost for cost, _ in costs), 1),
        "process": round(statistics.mean(cost for _, cost in costs), 1),
    }


async def _line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return await asyncio.to_thread(worker.stdout.readline)


def main() -> None:
    answers, processes, seconds = (
        int(given) for given in [*sys.argv[1:], *("2000", "4", "20")[len(sys.argv) - 1 :]]
    )
    with tempfile.TemporaryDirectory() as directory:
        redis = RedisServer(Path(directory)).start()
        environment = settings(redis.url, f"{directory}/site.sqlite3")
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, cwd=ROOT, env=environment, check=True)
        command = [sys.executable, "-m", "tests.answers.load", "--write"]
        workers = [
            subprocess.Popen(
                [*command, str(answers // processes), str(seconds)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(processes)
        ]
        os.environ.update(environment)
        import django

        django.setup()
        print(json.dumps(asyncio.run(serve(workers))))  # noqa: T201
        for worker in workers:
            worker.wait()
        redis.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        asyncio.run(write(int(sys.argv[2]), float(sys.argv[3])))
    else:
        main()
