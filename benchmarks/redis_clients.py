"""`python -m benchmarks.redis_clients`: what speaking to Redis costs, client by client.

Three questions decide which client carries the hot path of the Redis engine:

- what a command costs: PUBLISH, and the publication script (number, keep, trim, publish);
- what a message costs that a node receives, and how many messages one turn of the loop hands
  over, because those are the ones that can share a frame;
- what a publication costs in a plain thread: a WSGI worker, a task, a shell.

One client at a time, in rounds. Every sample is taken in a process of its own, because not
every client survives a second event loop; CPU is that of this process with all its threads, and
Redis' CPU is a column of its own. Messages are published in bursts by a script inside Redis, so
that publishing them costs next to nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import logging
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import redis

from benchmarks.processes import cpu_seconds, redis_program, start_redis
from benchmarks.redis_ways import (
    CALLERS,
    CHANNEL,
    DATA,
    OUR_CALLER,
    OUR_CALLERS,
    OUR_RECEIVER,
    OUR_THREAD,
    PUBLICATION,
    RECEIVERS,
    THREADS,
    WAYS,
    Receiver,
    Server,
    Thread,
    Way,
)
from benchmarks.results import Results, Sample
from benchmarks.tables import Column, headings, medians, ratio, table
from realtime.redis.link import encode

BURST = "for _ = 1, tonumber(ARGV[3]) do redis.call('publish', ARGV[2], ARGV[1]) end"
LOADS = ((16, 16), (50, 1000))
"""Messages in a burst, messages outstanding."""

Load = tuple[int, int]
Take = Callable[[], Sample]


class Meter:
    """Counts what happens between `start` and `stop`, and what it costs."""

    def __init__(self, server: Server) -> None:
        self._redis = server.pid
        self.count = 0
        self.turns = 0
        self.going = True

    def start(self) -> None:
        """Everything before was to get warm."""
        self._before = (self.count, self.turns, cpu_seconds(self._redis))
        self._cpu, self._clock = time.process_time(), time.perf_counter()

    def stop(self) -> Sample:
        """What happened since."""
        took, cpu = time.perf_counter() - self._clock, time.process_time() - self._cpu
        self.going = False
        count, turns, redis_cpu = self._before
        done = self.count - count
        if done == 0:
            raise RuntimeError("nothing happened: the client does not work")
        return {
            "per_s": done / took,
            "cpu_us": cpu / done * 1e6,
            "redis_us": (cpu_seconds(self._redis) - redis_cpu) / done * 1e6,
            "per_turn": done / max(1, self.turns - turns),
        }

    async def window(self, seconds: float) -> Sample:
        """Get warm, and measure for so long."""
        await asyncio.sleep(seconds / 4)  # others work meanwhile, here and below
        self.start()
        await asyncio.sleep(seconds)
        return self.stop()


async def run_commands(server: Server, way: Way, script: bool, seconds: float) -> Sample:
    """One sample of commands."""
    meter = Meter(server)
    each = CALLERS if way.pipeline else 1

    async with way.opened(server, script, way.pipeline) as call:

        async def caller() -> None:
            while meter.going:
                await call()
                meter.count += each

        async with asyncio.TaskGroup() as group:
            for _ in range(way.callers):
                group.create_task(caller())
            return await meter.window(seconds)


async def run_messages(server: Server, receiver: Receiver, load: Load, seconds: float) -> Sample:
    """One sample of messages: as many are published as have been received."""
    meter = Meter(server)
    loop = asyncio.get_running_loop()
    burst, outstanding = load
    publish = encode(("EVAL", BURST, 0, DATA, CHANNEL, burst))
    planned = False

    def turn() -> None:
        nonlocal planned
        planned = False
        meter.turns += 1

    def on_message() -> None:
        nonlocal planned
        meter.count += 1
        if not planned:  # as the flusher of the outboxes does it
            planned = True
            loop.call_soon(turn)
        if meter.going and meter.count % burst == 0:
            source.send(publish)

    with socket.create_connection(("127.0.0.1", server.port)) as source:
        source.send(encode(("CLIENT", "REPLY", "OFF")))
        async with receiver(server, on_message):
            for _ in range(outstanding // burst):
                source.send(publish)
            return await meter.window(seconds)


def run_thread(server: Server, thread: Thread, seconds: float) -> Sample:
    """One sample of publications in this thread."""
    meter = Meter(server)
    with thread(server) as publish:
        for _ in range(3):
            publish()
        meter.start()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            publish()
            meter.count += 1
        return meter.stop()


def measure(server: Server, rounds: int, seconds: float, run: Callable[[Any], Sample]) -> Results:
    """All samples, every client once a round."""
    takes: list[tuple[str, str, Take]] = []
    take: Take
    for script, way in itertools.product((False, True), WAYS):
        take = partial(_asynchronous, run, run_commands, server, way, script, seconds)
        takes.append(("script" if script else "PUBLISH", way.name, take))
    for load, (name, receiver) in itertools.product(LOADS, RECEIVERS.items()):
        take = partial(_asynchronous, run, run_messages, server, receiver, load, seconds)
        takes.append((_load_name(load), name, take))
    for name, thread in THREADS.items():
        takes.append(("thread", name, partial(run_thread, server, thread, seconds)))
    results = Results()
    for number in range(1, rounds + 1):
        sys.stderr.write(f"round {number} of {rounds}\n")
        for subject, name, take in takes:
            sample = _alone(take)
            if isinstance(sample, int):
                results.note(f"{subject}, {name}: ended with {sample}")
            else:
                results.add(subject, name, sample)
    return results


def _asynchronous(run: Callable[[Any], Sample], function: Any, *args: Any) -> Sample:
    return run(function(*args))


def _alone(take: Take) -> Sample | int:
    """Take a sample in a process of its own, or give its exit status; negative: the signal."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_take, args=(take, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        sample: Sample = ours.recv()
    except EOFError:
        process.join()
        return process.exitcode or 0
    process.join()
    return sample


def _take(take: Take, answer: Connection) -> None:
    answer.send(take())


_COMMON: tuple[Column, ...] = (
    ("a second", "per_s", ",.0f"),
    ("CPU us each", "cpu_us", ",.1f"),
    ("Redis' CPU us", "redis_us", ",.1f"),
)


def _table(
    results: Results,
    measure: str,
    references: Mapping[str, str],
    columns: Sequence[Column] = _COMMON,
) -> str:
    """One measure; `references` names the way of ours that a cell is compared with."""
    rows = []
    for cell in results.cells(measure):
        ours = references[cell]
        rows.append(
            [
                cell,
                *medians(results, measure, cell, columns),
                ratio(results.ratio(measure, "per_s", ours, cell)),
                ratio(results.ratio(measure, "cpu_us", cell, ours)),
            ]
        )
    head = ["client", *headings(columns), "speed, ours / it", "CPU, it / ours"]
    return table(measure, head, rows)


def report(results: Results) -> str:
    """All tables."""
    ways = {
        way.name: OUR_CALLERS if way.callers > 1 or way.pipeline else OUR_CALLER for way in WAYS
    }
    messages = dict.fromkeys(RECEIVERS, OUR_RECEIVER)
    handed_over = (*_COMMON, ("in a turn", "per_turn", ",.1f"))
    tables = [_table(results, measure, ways) for measure in ("PUBLISH", "script")]
    tables += [_table(results, _load_name(load), messages, handed_over) for load in LOADS]
    tables.append(_table(results, "thread", dict.fromkeys(THREADS, OUR_THREAD)))
    tables += results.notes
    return "\n".join(part for part in tables if part) + "\n"


def _load_name(load: Load) -> str:
    return f"messages, {load[1]} outstanding"


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

    gc.freeze()  # what every process below shares
    with contextlib.ExitStack() as stack:
        process = start_redis(stack, redis_program())
        server = Server(f"redis://127.0.0.1:{process.port}/0", process.port, process.pid)
        with redis.Redis.from_url(server.url) as client:
            client.script_load(PUBLICATION.text)
        results = measure(server, options.rounds, options.seconds, run)
    sys.stdout.write(report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
