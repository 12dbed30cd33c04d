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


# Commands: each of these yields a function that runs one command, or one pipeline of them.


@contextlib.asynccontextmanager
async def _redis_py(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    client = redis.asyncio.Redis.from_url(server.url, max_connections=CALLERS)

    def command(target: Any) -> Any:
        if script:
            return target.evalsha(server.sha, 2, *KEYS, DATA, CHANNEL)
        return target.publish(CHANNEL, DATA)

    async def commands() -> None:
        async with client.pipeline(transaction=False) as batch:
            for _ in range(CALLERS):
                command(batch)
            await batch.execute()

    yield commands if pipeline else partial(command, client)
    await client.aclose()


@contextlib.asynccontextmanager
async def _coredis(
    server: Server, script: bool, pipeline: bool, connections: int | None = None
) -> AsyncIterator[Call]:
    def command(target: Any) -> Any:
        if script:
            return target.evalsha(server.sha, keys=KEYS, args=[DATA, CHANNEL])
        return target.publish(CHANNEL, DATA)

    async with coredis.Redis.from_url(server.url, max_connections=connections) as client:

        async def commands() -> None:
            async with client.pipeline(transaction=False) as batch:
                for _ in range(CALLERS):
                    command(batch)

        yield commands if pipeline else partial(command, client)


@contextlib.asynccontextmanager
async def _glide(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    client = await glide.GlideClient.create(_glide_options(server))
    loaded = glide.Script(PUBLICATION)
    evalsha: list[str | bytes] = ["EVALSHA", server.sha, "2", *KEYS, DATA, CHANNEL]

    def command() -> Any:
        if script:
            return client.invoke_script(loaded, keys=[*KEYS], args=[DATA, CHANNEL])
        return client.publish(DATA, CHANNEL)

    async def commands() -> None:
        batch = glide.Batch(is_atomic=False)
        for _ in range(CALLERS):
            if script:
                batch.custom_command(evalsha)
            else:
                batch.publish(DATA, CHANNEL)
        await client.exec(batch, raise_on_error=True)

    yield commands if pipeline else command
    await client.close()


@contextlib.asynccontextmanager
async def _ours(server: Server, script: bool, pipeline: bool) -> AsyncIterator[Call]:
    connection = Connection(Host({"address": server.url}), Timeouts())
    loaded = Script.load(server.script)

    def command() -> Awaitable[object]:
        if script:
            return connection.run(loaded, KEYS, [DATA, CHANNEL])
        return connection.execute(b"PUBLISH", CHANNEL, DATA)

    yield command
    await connection.close()


# Messages: each of these subscribes, and calls `on_message` for every message.


@contextlib.asynccontextmanager
async def _redis_py_messages(
    server: Server, on_message: OnMessage, listen: bool
) -> AsyncIterator[None]:
    client = redis.asyncio.Redis.from_url(server.url)
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    await pubsub.subscribe(CHANNEL)

    async def receive() -> None:
        if listen:
            async for _ in pubsub.listen():
                on_message()
        while True:  # as channels_redis.pubsub does it
            if await pubsub.get_message(ignore_subscribe_messages=True, timeout=0.1):
                on_message()

    async with _running(receive()):
        yield
    await pubsub.aclose()  # type: ignore[no-untyped-call,unused-ignore]
    await client.aclose()


@contextlib.asynccontextmanager
async def _coredis_messages(
    server: Server, on_message: OnMessage, handler: bool
) -> AsyncIterator[None]:
    async with coredis.Redis.from_url(server.url) as client:
        if handler:
            handlers = {CHANNEL: lambda _: on_message()}
            async with client.pubsub(channel_handlers=handlers):
                yield
            return
        async with client.pubsub(channels=[CHANNEL], ignore_subscribe_messages=True) as pubsub:

            async def receive() -> None:
                async for _ in pubsub:
                    on_message()

            async with _running(receive()):
                yield


@contextlib.asynccontextmanager
async def _glide_messages(
    server: Server, on_message: OnMessage, callback: bool
) -> AsyncIterator[None]:
    configuration = glide.GlideClientConfiguration
    subscriptions = configuration.PubSubSubscriptions(
        channels_and_patterns={configuration.PubSubChannelModes.Exact: {CHANNEL}},
        callback=(lambda _message, _context: on_message()) if callback else None,
        context=None,
    )
    client = await glide.GlideClient.create(
        _glide_options(server, pubsub_subscriptions=subscriptions)
    )

    async def receive() -> None:
        while not callback:
            await client.get_pubsub_message()
            on_message()

    async with _running(receive()):
        yield
    await client.close()


@contextlib.asynccontextmanager
async def _our_messages(server: Server, on_message: OnMessage) -> AsyncIterator[None]:
    subscriptions = Subscriptions(
        Host({"address": server.url}),
        Timeouts(),
        on_message=lambda _name, _data: on_message(),
        on_lost=lambda: None,
        on_restored=lambda: None,
    )
    await subscriptions.subscribe(CHANNEL)
    yield
    await subscriptions.close()


# Plain threads: each of these yields a function that publishes and waits.


@contextlib.contextmanager
def _redis_py_thread(server: Server) -> Iterator[Callable[[], object]]:
    pool = redis.BlockingConnectionPool.from_url(server.url)
    with redis.Redis(connection_pool=pool) as client:
        yield lambda: client.evalsha(server.sha, 2, *KEYS, DATA, CHANNEL)
    pool.disconnect()


@contextlib.contextmanager
def _our_thread(server: Server) -> Iterator[Callable[[], object]]:
    client = BlockingRedis(Host({"address": server.url}), Timeouts())
    loaded = Script.load(server.script)
    yield lambda: client.run(loaded, KEYS, [DATA, CHANNEL])
    client.close()


@contextlib.contextmanager
def _layer_thread(server: Server, layer: Any) -> Iterator[Callable[[], object]]:
    made = layer(hosts=[server.url], prefix=f"bench{next(_prefixes)}")
    group_send = async_to_sync(made.group_send)
    if isinstance(made, channels_redis.core.RedisChannelLayer):  # sends to members only
        async_to_sync(made.group_add)("group", "specific.member!1")
    message = {"type": "bench.message", "data": DATA}
    yield lambda: group_send("group", message)


_prefixes = itertools.count()


@dataclass(frozen=True)
class Way:
    """One way to run commands."""

    name: str
    opened: Callable[[Server, bool, bool], AbstractAsyncContextManager[Call]]
    callers: int = 1
    pipeline: bool = False


OURS = "ours: one connection, pipelining by itself"
_SINGLE = partial(_coredis, connections=1)
WAYS = (
    Way("redis.asyncio, 1 caller", _redis_py),
    Way("coredis, 1 caller", _coredis),
    Way("glide, 1 caller", _glide),
    Way(f"{OURS}, 1 caller", _ours),
    Way("redis.asyncio, 50 callers, a pool", _redis_py, CALLERS),
    Way("coredis, 50 callers, its pool", _coredis, CALLERS),
    Way("coredis, 50 callers, one connection", _SINGLE, CALLERS),
    Way("glide, 50 callers, one connection", _glide, CALLERS),
    Way(f"{OURS}, 50 callers", _ours, CALLERS),
    Way("redis.asyncio, pipelines of 50", _redis_py, pipeline=True),
    Way("coredis, pipelines of 50", _coredis, pipeline=True),
    Way("glide, batches of 50", _glide, pipeline=True),
)

OUR_MESSAGES = "ours: Subscriptions"
RECEIVERS: dict[str, Callable[[Server, OnMessage], AbstractAsyncContextManager[None]]] = {
    "redis.asyncio get_message(timeout=0.1)": partial(_redis_py_messages, listen=False),
    "redis.asyncio listen()": partial(_redis_py_messages, listen=True),
    "coredis async for": partial(_coredis_messages, handler=False),
    "coredis handler": partial(_coredis_messages, handler=True),
    "glide get_pubsub_message()": partial(_glide_messages, callback=False),
    "glide callback": partial(_glide_messages, callback=True),
    OUR_MESSAGES: _our_messages,
}
LOADS = ((16, 16), (50, 1000))
"""Messages in a burst, messages outstanding."""

OUR_THREAD = "ours: BlockingRedis, script"
THREADS: dict[str, Callable[[Server], AbstractContextManager[Callable[[], object]]]] = {
    "redis-py, pool, script": _redis_py_thread,
    OUR_THREAD: _our_thread,
    "async_to_sync, channels_redis.pubsub": partial(
        _layer_thread, layer=channels_redis.pubsub.RedisPubSubChannelLayer
    ),
    "async_to_sync, channels_redis.core": partial(
        _layer_thread, layer=channels_redis.core.RedisChannelLayer
    ),
}


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


@contextlib.asynccontextmanager
async def _running(*coroutines: Any) -> AsyncIterator[None]:
    """Run coroutines for the length of a block; what goes wrong in them ends it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in tasks:
            task.cancel()


def _glide_options(server: Server, **options: Any) -> Any:
    address = glide.NodeAddress("127.0.0.1", server.port)
    return glide.GlideClientConfiguration([address], **options)


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
