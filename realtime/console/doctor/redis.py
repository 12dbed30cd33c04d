"""Each Redis of the engine, looked at through the engine's own connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property, partial
from statistics import median
from typing import Any

from realtime.config.options import Config
from realtime.console.doctor.finding import Check, Finding, fail, ok, skip, warn
from realtime.console.doctor.network import judge_skew
from realtime.engine.redis.redis_bus import RedisBus
from realtime.errors import EngineUnavailable
from realtime.serving import serving

VERSION_MIN = 5
"""The first one with streams."""
PINGS = 20
SLOW = 0.005
"""Seconds; a publish takes one round trip."""
BUFFER_MIN = 32 << 20
"""Bytes; the default of Redis for the hard limit of subscribers."""


class Shard:
    """One Redis. Whatever asks it raises EngineUnavailable."""

    def __init__(self, bus: RedisBus, index: int) -> None:
        self._client = bus.blocking(index)
        self.label = bus.hosts[index].label
        """Where it is, without credentials."""

    def ask(self, *command: str) -> Any:
        """Send a command; the reply is as Redis gives it."""
        return self._client.execute(*command)

    @cached_property
    def info(self) -> dict[str, str]:
        """What INFO says: field → value."""
        lines = self.ask("INFO").decode("utf-8", "replace").splitlines()
        pairs = (line.partition(":") for line in lines if not line.startswith("#"))
        return {name: value for name, colon, value in pairs if colon}


def checks(config: Config) -> Iterator[Check]:
    """Everything of each shard; of one that does not answer, only that."""
    bus = serving.redis_bus(config)
    for index in range(len(bus.hosts)):
        shard = Shard(bus, index)
        name = "redis" if len(bus.hosts) == 1 else f"redis {index + 1}"
        try:
            _ = shard.info
        except EngineUnavailable as error:
            yield Check(name, partial(away, error))
            continue
        yield Check(name, partial(version, shard))
        for what, look in (
            ("role", role),
            ("latency", latency),
            ("eviction", eviction),
            ("persistence", partial(persistence, config)),
            ("subscribers", subscribers),
            ("clock", clock),
        ):
            yield Check(f"{name} {what}", partial(look, shard))


def away(error: EngineUnavailable) -> Finding:
    """It does not answer; its text names no password."""
    return fail(str(error), "Is Redis there, and do the options name it rightly?")


def version(shard: Shard) -> Finding:
    """Whether it has what the engine needs."""
    text = shard.info.get("redis_version", "0")
    found = f"{shard.label} has version {text}"
    if int(text.partition(".")[0]) < VERSION_MIN:
        return fail(found, f"Streams came with Redis {VERSION_MIN}: use a newer one.")
    if shard.info.get("cluster_enabled") == "1":
        return fail(
            f"{shard.label} is a Redis Cluster, which is not supported",
            "Name several servers in redis_url; channels are shared among them.",
        )
    return ok(found)


def role(shard: Shard) -> Finding:
    """Whether it takes writes."""
    kind = shard.info.get("role", "")
    if kind != "master":
        return fail(
            f"it is a {kind or 'server of unknown role'}, which takes no writes",
            "Name the master, or the Sentinels that know it (redis_sentinels).",
        )
    return ok("it is a master")


def latency(shard: Shard) -> Finding:
    """How long a round trip takes."""
    durations = []
    for _ in range(PINGS):
        began = time.perf_counter()
        shard.ask("PING")
        durations.append(time.perf_counter() - began)
    found = f"a round trip takes {median(durations) * 1000:.2f} ms (median of {PINGS})"
    if median(durations) > SLOW:
        return warn(found, "Every publish waits that long: bring Redis nearer, or see its load.")
    return ok(found)


def eviction(shard: Shard) -> Finding:
    """Whether it may throw away what is kept."""
    policy = shard.info.get("maxmemory_policy", "")
    limit = int(shard.info.get("maxmemory", "0"))
    if policy == "noeviction":
        return ok("nothing is thrown away (noeviction)")
    if not limit:
        return ok(f"memory has no limit, so nothing is thrown away ({policy})")
    return warn(
        f"when its memory is full, history and presence are thrown away ({policy})",
        "Set maxmemory-policy to noeviction; a cache belongs in another Redis.",
    )


def persistence(config: Config, shard: Shard) -> Finding:
    """Whether publications survive its crash, or clients learn that they did not."""
    options = (config.channel, *config.namespaces.values())
    if not any(each.keeps_history for each in options):
        return skip("no channel keeps history")
    if config.redis_epoch_per_run:
        return ok("after a restart clients learn that publications may be lost")
    if shard.info.get("aof_enabled") == "1":
        return ok(
            "writes go to disk (appendonly)",
            "With appendfsync everysec the last second may be lost; redis_epoch_per_run tells"
            " clients.",
        )
    return warn(
        "a crash loses the last publications, and clients do not learn it",
        "Turn redis_epoch_per_run on, or appendonly in Redis.",
    )


def subscribers(shard: Shard) -> Finding:
    """How much a process may lag behind before Redis cuts its subscriptions."""
    try:
        reply = shard.ask("CONFIG", "GET", "client-output-buffer-limit")
    except EngineUnavailable:
        return skip("this Redis does not tell its settings (CONFIG GET is refused)")
    limits = _limits(reply)
    if "pubsub" not in limits:
        return skip("this Redis does not tell client-output-buffer-limit")
    hard, soft, seconds = limits["pubsub"]
    if hard and hard < BUFFER_MIN:
        return warn(
            f"a process that lags {hard >> 10} KiB behind loses its subscriptions for a moment",
            "Set client-output-buffer-limit to pubsub 32mb 8mb 60 (the default) or more.",
        )
    return ok(
        f"client-output-buffer-limit pubsub {hard} {soft} {seconds}" if hard else "no buffer limit"
    )


def _limits(reply: list[bytes]) -> dict[str, tuple[int, int, int]]:
    """client-output-buffer-limit: class → hard and soft limit in bytes, seconds."""
    words = reply[1].decode().split() if len(reply) == 2 else []
    return {
        words[start]: (int(words[start + 1]), int(words[start + 2]), int(words[start + 3]))
        for start in range(0, len(words) - 3, 4)
    }


def clock(shard: Shard) -> Finding:
    """Whether its clock agrees with the one here: it decides when presence expires."""
    before = time.time()
    seconds, micros = shard.ask("TIME")
    middle = (before + time.time()) / 2
    return judge_skew(int(seconds) + int(micros) / 1e6 - middle, "the clock of Redis")
