"""Publishes in a loop: `bench_publish.py WAY`, for `benchmarks.measures.cluster`.

Reads lines "WARM SECONDS" on stdin and answers each with a line of JSON: calls a second, and
the CPU time of a call in microseconds. Redis, and the prefix of our names in it, are those of
SERVICE_REDIS_URL and SERVICE_REDIS_PREFIX. What the ways are is said at `WAYS`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import django
from django.conf import settings

REDIS_URL = os.environ["SERVICE_REDIS_URL"]
PREFIX = os.environ["SERVICE_REDIS_PREFIX"]
CALLERS = 50
HISTORY_SIZE = 100
HISTORY_LIFETIME = 300

settings.configure(
    SECRET_KEY="not a secret",
    INSTALLED_APPS=["channels", "realtime"],
    REALTIME={
        "namespaces": [
            {
                "name": "kept",
                "history_size": HISTORY_SIZE,
                "history_lifetime": HISTORY_LIFETIME,
                "history_recover": True,
            }
        ]
    },
    CHANNEL_LAYERS={
        name: {
            "BACKEND": backend,
            "CONFIG": {"hosts": [REDIS_URL], "prefix": f"{PREFIX}-{name}"},
        }
        for name, backend in (
            ("pubsub", "channels_redis.pubsub.RedisPubSubChannelLayer"),
            ("core", "channels_redis.core.RedisChannelLayer"),
        )
    },
    USE_TZ=True,
)
django.setup()

import redis.asyncio
from asgiref.sync import async_to_sync
from channels.layers import channel_layers

import realtime
from realtime.engine.redis.scripts import APPEND
from realtime.serving import serving

DATA = {"ts": 123456789012345, "n": 1, "pad": "a" * 56}
"""About 100 bytes of JSON, as everywhere else in the suite."""

Sample = dict[str, float]
Take = Callable[[float, float], Sample]


class Meter:
    """Counts calls, and what they cost, from its making on."""

    def __init__(self, seconds: float) -> None:
        self.calls = 0
        self._began, self._cpu = time.perf_counter(), time.process_time()
        self._end = self._began + seconds

    def going(self) -> bool:
        """Whether there is time for another call."""
        return time.perf_counter() < self._end

    def sample(self) -> Sample:
        """What was counted."""
        took, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return {"calls_per_s": self.calls / took, "cpu_us_per_call": cpu / self.calls * 1e6}


def in_thread(call: Callable[[], object]) -> Take:
    """Call one by one, without an event loop."""

    def take(warm: float, seconds: float) -> Sample:
        meter = Meter(0)
        for length in (warm, seconds):
            meter = Meter(length)
            while meter.going():
                call()
                meter.calls += 1
        return meter.sample()

    return take


def on_loop(
    call: Callable[[], Awaitable[object]],
    callers: int,
    start: Callable[[], Awaitable[object]] | None = None,
) -> Take:
    """Call on an event loop, so many at once; `start` comes before everything."""
    runner = asyncio.Runner()

    async def window(seconds: float) -> Sample:
        meter = Meter(seconds)

        async def caller() -> None:
            while meter.going():
                await call()
                meter.calls += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(caller())
        return meter.sample()

    def take(warm: float, seconds: float) -> Sample:
        if start is not None:
            runner.run(_awaited(start))
        runner.run(window(warm))
        return runner.run(window(seconds))

    return take


async def _awaited(call: Callable[[], Awaitable[object]]) -> None:
    await call()


def group_send(alias: str) -> Take:
    """Synchronous code that sends to a group, as the documentation of Channels shows it."""
    layer: Any = channel_layers[alias]
    if alias == "core":  # it sends to members only
        async_to_sync(layer.group_add)("g", "specific.member!1")
    message = {"type": "chat.message", "message": DATA}
    return in_thread(lambda: async_to_sync(layer.group_send)("g", message))


def redis_py() -> Take:
    """Our script through redis-py, one call after another."""
    client = redis.asyncio.Redis.from_url(REDIS_URL)
    script = client.register_script(APPEND.text)
    keys = [f"{PREFIX}-redis-py:{name}" for name in ("stream", "meta", "epoch")]
    message = json.dumps(DATA)
    arguments: list[str | int] = [message, HISTORY_SIZE, HISTORY_LIFETIME, 0, "epoch", 0]
    arguments.append(f"{PREFIX}-redis-py")  # where it is published
    arguments.append("a UID of 20 letters.")
    return on_loop(lambda: script(keys, arguments), 1)


WAYS: dict[str, Callable[[], Take]] = {
    "publish": lambda: in_thread(partial(realtime.publish, "plain", DATA)),
    "publish-kept": lambda: in_thread(partial(realtime.publish, "kept:a", DATA)),
    "group_send-pubsub": partial(group_send, "pubsub"),
    "group_send-core": partial(group_send, "core"),
    # in a process that serves: its node, and many who publish at once
    "apublish-kept": lambda: on_loop(
        partial(realtime.apublish, "kept:b", DATA), CALLERS, serving.start
    ),
    "redis-py": redis_py,
}


def main() -> None:
    """Measure until stdin ends."""
    take = WAYS[sys.argv[1]]()
    for line in sys.stdin:
        warm, seconds = map(float, line.split())
        sys.stdout.write(json.dumps(take(warm, seconds)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
