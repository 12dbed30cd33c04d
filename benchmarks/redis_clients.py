"""`python -m benchmarks.redis_clients`: what speaking to Redis costs, client by client.

Three questions decide which client carries the hot path of the Redis engine:

- what a command costs: PUBLISH, and the publication script (number, keep, trim, publish);
- what a message costs that a node receives, and how many messages one turn of the loop hands
  over, because those are the ones that can share a frame;
- what a publication costs in a plain thread: a WSGI worker, a task, a shell.

Everything runs in this process, one client at a time, in rounds. CPU is that of the process
with all its threads; Redis is a process of its own and its CPU is a column of its own. Messages
are published in bursts by a script inside Redis, so that publishing them costs next to nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import logging
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import channels_redis.core
import channels_redis.pubsub
import coredis  # type: ignore[import-not-found,unused-ignore]
import glide  # type: ignore[import-not-found,unused-ignore]
import hiredis
import redis
import redis.asyncio
from asgiref.sync import async_to_sync

from benchmarks import processes
from benchmarks.processes import Command, Process, cpu_seconds
from benchmarks.results import Results, Sample
from realtime.redis.blocking import BlockingRedis
from realtime.redis.connection import Connection
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.script import Script
from realtime.redis.subscriptions import Subscriptions

CALLERS = 50
"""Tasks that call at once, and commands in an explicit pipeline."""
CHANNEL = "bench:channel"
DATA = b"x" * 150
KEYS = ["bench:meta", "bench:stream"]

PUBLICATION = """
local offset = redis.call('hincrby', KEYS[1], 's', 1)
redis.call('xadd', KEYS[2], 'MAXLEN', 100, offset .. '-0', 'd', ARGV[1])
redis.call('expire', KEYS[2], 300)
redis.call('publish', ARGV[2], ARGV[1])
return offset
"""
BURST = "for _ = 1, tonumber(ARGV[3]) do redis.call('publish', ARGV[2], ARGV[1]) end"

Call = Callable[[], Awaitable[object]]
OnMessage = Callable[[], None]


@dataclass(frozen=True)
class Server:
    """The Redis of this run."""

    url: str
    port: int
    pid: int
    sha: str
    """Of the publication script, which is loaded."""
    script: Path


class Meter:
    """Counts what happens between `start` and `stop`, and what it costs."""

    def __init__(self, server: Server) -> None:
        self._redis = server.pid
        self.count = 0
        self.turns = 0

    def start(self) -> None:
        self._before = (self.count, self.turns, cpu_seconds(self._redis))
        self._cpu, self._clock = time.process_time(), time.perf_counter()

    def stop(self) -> Sample:
        took, cpu = time.perf_counter() - self._clock, time.process_time() - self._cpu
        count, turns, redis_cpu = self._before
        done = self.count - count
        if done == 0:
            raise RuntimeError("nothing was done: the client does not work")
        return {
            "per_s": done / took,
            "cpu_us": cpu / done * 1e6,
            "redis_us": (cpu_seconds(self._redis) - redis_cpu) / done * 1e6,
            "per_turn": done / max(1, self.turns - turns),
        }


async def run_commands(server: Server, way: Way, script: bool, seconds: float) -> Sample:
    """One sample of commands."""
    meter = Meter(server)
    async with way.opened(server, script, way.pipeline) as call:
        each = CALLERS if way.pipeline else 1

        async def caller() -> None:
            while True:
                await call()
                meter.count += each

        async with _running(*(caller() for _ in range(way.callers))):
            return await _window(meter, seconds)


async def run_messages(
    server: Server, receiver: Any, load: tuple[int, int], seconds: float
) -> Sample:
    """One sample of messages; as many are published as were received."""
    meter = Meter(server)
    loop = asyncio.get_running_loop()
    burst, outstanding = load
    planned = False

    def turn() -> None:
        nonlocal planned
        planned = False
        meter.turns += 1

    def on_message() -> None:
        nonlocal planned
        meter.count += 1
        if not planned:  # as an outbox plans its flush
            planned = True
            loop.call_soon(turn)
        if meter.count % burst == 0:
            source.send(publish)

    with socket.create_connection(("127.0.0.1", server.port)) as source:
        source.send(hiredis.pack_command(("CLIENT", "REPLY", "OFF")))
        publish = hiredis.pack_command(("EVAL", BURST, 0, DATA, CHANNEL, burst))
        async with receiver(server, on_message):
            for _ in range(outstanding // burst):
                source.send(publish)
            return await _window(meter, seconds)


def run_thread(server: Server, opened: Any, seconds: float) -> Sample:
    """One sample of publications in this thread."""
    meter = Meter(server)
    with opened(server) as publish:
        for _ in range(5):
            publish()
        meter.start()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            publish()
            meter.count += 1
        return meter.stop()


async def _window(meter: Meter, seconds: float) -> Sample:
    await asyncio.sleep(seconds / 4)
    meter.start()
    await asyncio.sleep(seconds)
    return meter.stop()



Column = tuple[str, str, str]
"""Heading, metric, format."""

_COMMON: tuple[Column, ...] = (
    ("a second", "per_s", ",.0f"),
    ("CPU us each", "cpu_us", ",.1f"),
    ("Redis' CPU us", "redis_us", ",.1f"),
)


def _table(
    results: Results,
    measure: str,
    references: dict[str, str],
    columns: Sequence[Column] = _COMMON,
) -> str:
    """One measure; `references` names the way of ours that a cell is compared with."""
    head = [measure, *(heading for heading, _, _ in columns), "speed, ours / it", "CPU, it / ours"]
    lines = [head]
    for cell in results.cells(measure):
        values = [(results.median(measure, cell, metric), form) for _, metric, form in columns]
        ours = references[cell]
        ratios = (
            results.ratio(measure, "per_s", ours, cell),
            results.ratio(measure, "cpu_us", cell, ours),
        )
        lines.append(
            [cell]
            + ["-" if value is None else format(value, form) for value, form in values]
            + ["-" if ratio is None else f"{ratio:.3g}x" for ratio in ratios]
        )
    lines.insert(1, ["---", *("--:" for _ in head[1:])])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "| "
        + " | ".join(
            [line[0].ljust(widths[0])]
            + [text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)]
        )
        + " |"
        for line in lines
    )


def _report(results: Results) -> str:
    alone, together = (f"{OURS}, {callers}" for callers in ("1 caller", "50 callers"))
    ways = {way.name: alone if way.callers == 1 and not way.pipeline else together for way in WAYS}
    messages = dict.fromkeys(RECEIVERS, OUR_MESSAGES)
    handed_over = (*_COMMON, ("a turn", "per_turn", ",.1f"))
    tables = [_table(results, measure, ways) for measure in ("PUBLISH", "script")]
    tables += [_table(results, _load_name(load), messages, handed_over) for load in LOADS]
    tables.append(_table(results, "thread", dict.fromkeys(THREADS, OUR_THREAD)))
    return "\n\n".join(tables) + "\n"


def _load_name(load: tuple[int, int]) -> str:
    return f"messages, {load[1]} outstanding"


def measure(server: Server, rounds: int, seconds: float, run: Callable[[Any], Sample]) -> Results:
    """All samples, every client once a round."""
    results = Results()
    for number in range(1, rounds + 1):
        sys.stderr.write(f"round {number} of {rounds}\n")
        for script, way in itertools.product((False, True), WAYS):
            gc.collect()
            sample = run(run_commands(server, way, script, seconds))
            results.add("script" if script else "PUBLISH", way.name, sample)
        for load, (name, receiver) in itertools.product(LOADS, RECEIVERS.items()):
            gc.collect()
            sample = run(run_messages(server, receiver, load, seconds))
            results.add(_load_name(load), name, sample)
        for name, opened in THREADS.items():
            gc.collect()
            results.add("thread", name, run_thread(server, opened, seconds))
    return results


def main() -> int:
    """Start a Redis, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_clients")
    parser.add_argument("--rounds", type=int, default=3, help="samples of every cell")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of one sample")
    parser.add_argument("--uvloop", action="store_true", help="run on uvloop")
    options = parser.parse_args()
    logging.getLogger("coredis").setLevel(logging.CRITICAL)
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if options.uvloop:
        import uvloop

        factory = uvloop.new_event_loop

    def run(coroutine: Any) -> Sample:
        with asyncio.Runner(loop_factory=factory) as runner:
            sample: Sample = runner.run(coroutine)
            return sample

    with contextlib.ExitStack() as stack:
        words = [processes.redis_program(), "--port", "{port}", "--bind", "127.0.0.1"]
        process = Process("Redis", Command([*words, "--save", "", "--appendonly", "no"]))
        stack.callback(process.stop)
        process.wait_until_listening()
        url = f"redis://127.0.0.1:{process.port}/0"
        script = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "publication.lua"
        script.write_text(PUBLICATION)
        with redis.Redis.from_url(url) as client:
            sha = client.script_load(PUBLICATION)
        server = Server(url, process.port, process.pid, str(sha), script)
        results = measure(server, options.rounds, options.seconds, run)
    sys.stdout.write(_report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
