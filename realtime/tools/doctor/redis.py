"""Checks of each Redis of the engine, over the engine's own connections."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import cached_property, partial
from statistics import median
from typing import Any

from realtime.config import sources
from realtime.config.options import Config
from realtime.engine.redis.keys import Keys
from realtime.engine.redis.partitions import DEFAULT_PARTITIONS, Partitions
from realtime.engine.redis.redis_bus import RedisBus
from realtime.engine.redis.servers import BlockingClient
from realtime.errors import EngineUnavailable
from realtime.redis.redirects import Redirected
from realtime.serving import serving
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, skip, warn
from realtime.tools.doctor.network import judge_clock

MIN_VERSION = (6, 2)
"""The oldest version that is tested."""
PINGS = 20
SLOW = 0.005
"""Seconds of a round trip; a publication takes one."""
MIN_BUFFER = 32 << 20
"""Bytes; Redis' default for the hard limit of subscribers."""


class Shard:
    """One Redis. Its commands raise EngineUnavailable."""

    def __init__(self, label: str, client: BlockingClient) -> None:
        self._client = client
        self.label = label
        """Its address without credentials."""

    def run(self, *command: str) -> Any:
        """Send a command and return the reply as Redis gives it."""
        return self._client.execute(*command)

    @cached_property
    def info(self) -> dict[str, str]:
        """The reply to INFO: field → value."""
        lines = self.run("INFO").decode("utf-8", "replace").splitlines()
        pairs = (line.partition(":") for line in lines if not line.startswith("#"))
        return {name: value for name, colon, value in pairs if colon}


def checks(config: Config) -> Iterator[DoctorCheck]:
    """Yield the checks of each server; for one that does not answer, only a failure."""
    bus = serving.engines(config).redis(config)
    if bus is None:
        return
    try:
        servers = bus.examined()
    except EngineUnavailable as error:
        yield DoctorCheck("redis", partial(away, error))
        return
    for number, (label, client) in enumerate(servers, 1):
        shard = Shard(label, client)
        name = "redis" if len(servers) == 1 else f"redis {number}"
        try:
            _ = shard.info
        except EngineUnavailable as error:
            yield DoctorCheck(name, partial(away, error))
            continue
        yield DoctorCheck(name, partial(version, shard))
        for what, check in (
            ("layout", partial(layout, config, bus)),
            ("role", role),
            ("latency", latency),
            ("eviction", eviction),
            ("persistence", partial(persistence, config)),
            ("subscribers", subscribers),
            ("clock", partial(clock, config)),
        ):
            yield DoctorCheck(f"{name} {what}", partial(check, shard))


def away(error: EngineUnavailable) -> Finding:
    """Report a Redis that does not answer. The text of the error holds no password."""
    return fail(str(error), "Check that Redis runs, and that the options name it correctly.")


def version(shard: Shard) -> Finding:
    """Check that it is a version that the service supports."""
    text = shard.info.get("redis_version", "0")
    found = f"{shard.label} has version {text}"
    if valkey := shard.info.get("valkey_version"):
        found = f"{shard.label} is Valkey {valkey}, with the commands of Redis {text}"
    if tuple(int(number) for number in re.findall(r"\d+", text)[:2]) < MIN_VERSION:
        return fail(found, "The service needs version {}.{} or later.".format(*MIN_VERSION))
    return ok(found)


def layout(config: Config, bus: RedisBus, shard: Shard) -> Finding:
    """Check that the names of keys fit the server, and that no node uses other names."""
    count = bus.partitions.count
    if not count and shard.info.get("cluster_enabled") == "1":
        return fail(
            f"{shard.label} is a Redis Cluster, and keys have no hash tags",
            "Set redis_partitions to 128, in all processes at once: see docs/redis.md.",
        )
    if unserved := bus.servers.unserved():
        return fail(
            f"{unserved} of {count} partitions have no server in the cluster",
            "Run redis-cli --cluster check, and give each slot to a server.",
        )
    prefix = sources.redis_prefix(config)
    others = [other for other in (0, DEFAULT_PARTITIONS) if other != count]
    for other in others:
        if _exists(shard, Keys(prefix, Partitions(other)).nodes[0]):
            return fail(
                f"keys are {_described(count)}, and there are nodes for which they are"
                f" {_described(other)}",
                "Give all processes the same redis_partitions; these are two services now.",
            )
    return ok(f"keys are {_described(count)}")


def _exists(shard: Shard, key: str) -> bool:
    try:
        return bool(shard.run("EXISTS", key))
    except Redirected:  # another server of the cluster has the slot of the key
        return False


def _described(count: int) -> str:
    return f"in {count} partitions, by hash tags" if count else "without hash tags"


def role(shard: Shard) -> Finding:
    """Check that it accepts writes."""
    kind = shard.info.get("role", "")
    if kind != "master":
        return fail(
            f"it is a {kind or 'server of unknown role'}, which accepts no writes",
            "Name the master, or the Sentinels that watch it (redis_sentinels).",
        )
    return ok("it is a master")


def latency(shard: Shard) -> Finding:
    """Measure a round trip."""
    durations = []
    for _ in range(PINGS):
        began = time.perf_counter()
        shard.run("PING")
        durations.append(time.perf_counter() - began)
    found = f"a round trip takes {median(durations) * 1000:.2f} ms (median of {PINGS})"
    if median(durations) > SLOW:
        return warn(found, "Every publication takes that long: see the load of Redis.")
    return ok(found)


def eviction(shard: Shard) -> Finding:
    """Check that it does not evict history and presence."""
    policy = shard.info.get("maxmemory_policy", "")
    limit = int(shard.info.get("maxmemory", "0"))
    if policy == "noeviction":
        return ok("nothing is evicted (noeviction)")
    if not limit:
        return ok(f"memory has no limit, so nothing is evicted ({policy})")
    return warn(
        f"when its memory is full, it evicts history and presence ({policy})",
        "Set maxmemory-policy to noeviction; use another Redis for a cache.",
    )


def persistence(config: Config, shard: Shard) -> Finding:
    """Check that publications survive a crash, or that clients notice the loss."""
    options = (config.channel, *config.namespaces.values())
    if not any(each.keeps_history for each in options):
        return skip("no channel keeps history")
    if config.redis_epoch_per_run:
        return ok("after a restart clients notice that publications may be lost")
    if shard.info.get("aof_enabled") == "1":
        return ok(
            "writes go to disk (appendonly)",
            "With appendfsync everysec the last second may be lost; with redis_epoch_per_run"
            " clients notice it.",
        )
    return warn(
        "a crash loses the last publications, and clients do not notice",
        "Turn redis_epoch_per_run on, or appendonly in Redis.",
    )


def subscribers(shard: Shard) -> Finding:
    """Check how far a process may fall behind before Redis closes its pub/sub connection."""
    try:
        reply = shard.run("CONFIG", "GET", "client-output-buffer-limit")
    except EngineUnavailable:
        return skip("this Redis does not show its settings (CONFIG GET is refused)")
    limits = _limits(reply)
    if "pubsub" not in limits:
        return skip("this Redis does not show client-output-buffer-limit")
    hard, soft, seconds = limits["pubsub"]
    if hard and hard < MIN_BUFFER:
        return warn(
            f"a process that falls {hard >> 10} KiB behind loses its subscriptions for a moment",
            "Set client-output-buffer-limit to pubsub 32mb 8mb 60 (the default) or more.",
        )
    return ok(
        f"client-output-buffer-limit pubsub {hard} {soft} {seconds}" if hard else "no buffer limit"
    )


def _limits(reply: list[bytes]) -> dict[str, tuple[int, int, int]]:
    """Return client-output-buffer-limit: class → hard and soft limit in bytes, seconds."""
    words = reply[1].decode().split() if len(reply) == 2 else []
    return {
        words[start]: (int(words[start + 1]), int(words[start + 2]), int(words[start + 3]))
        for start in range(0, len(words) - 3, 4)
    }


def clock(config: Config, shard: Shard) -> Finding:
    """Check the clock by which presence expires, and publications have their time."""

    def read() -> float:
        seconds, micros = shard.run("TIME")
        return int(seconds) + int(micros) / 1e6

    return judge_clock(config, "Redis", read)
