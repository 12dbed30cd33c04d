"""What we want to reach, as ratios within one run. Shown as met or not; never an exit status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.cells import (
    CFAN,
    DELTAS,
    FIRST,
    HALF,
    MEMORY_DAPHNE,
    MEMORY_UVICORN,
    NODE_SOCKETIO,
    ONE_MEMORY,
    ONE_REDIS,
    OURS_DAPHNE,
    OURS_UVICORN,
    PYTHON_SOCKETIO,
    REDIS_DAPHNE,
    SECOND,
    STOCK_DAPHNE,
    STOCK_UVICORN,
    TWO_PUBSUB,
    TWO_REDIS,
)
from benchmarks.measures.cluster import (
    APUBLISH_KEPT,
    PUBLISH,
    REDIS_PY,
    SEND_CORE,
    SEND_PUBSUB,
)
from benchmarks.results import Results


@dataclass(frozen=True)
class Goal:
    """One goal: `value` of the results is at least, or at most, the limit."""

    text: str
    limit: float
    value: Callable[[Results], float | None]
    at_most: bool = False
    unit: str = "x"

    def met(self, value: float) -> bool:
        """Whether a measured value reaches the goal."""
        return value <= self.limit if self.at_most else value >= self.limit


def _deliveries(window: int, ours: str, peer: str) -> Callable[[Results], float | None]:
    return lambda results: results.ratio(f"fanout w{window}", "deliveries_per_s", ours, peer)


def _cpu(ours: str) -> Callable[[Results], float | None]:
    return lambda results: results.ratio("fanout w1", "cpu_us_per_delivery", ours, CFAN)


def _connections(ours: str, peer: str) -> Callable[[Results], float | None]:
    """How many connections ours makes in the CPU time in which the peer makes one."""

    def value(results: Results) -> float | None:
        ratio = results.ratio("connections", "cpu_us_per_connection", ours, peer)
        return 1 / ratio if ratio else None

    return value


def _commands(ours: str, peer: str) -> Callable[[Results], float | None]:
    return lambda results: results.ratio("commands", "replies_per_s", ours, peer)


def _median(
    measure: str, cell: str, metric: str, factor: float = 1
) -> Callable[[Results], float | None]:
    def value(results: Results) -> float | None:
        found = results.median(measure, cell, metric)
        return None if found is None else found * factor

    return value


def _spread(window: int, metric: str, peer: str) -> Callable[[Results], float | None]:
    """Two processes of ours by another service."""
    return lambda results: results.ratio(f"cluster w{window}", metric, TWO_REDIS, peer)


def _calls(ours: str, peer: str) -> Callable[[Results], float | None]:
    return lambda results: results.ratio("publish", "calls_per_s", ours, peer)


def _generations(name: str, peer: str, server: str) -> Callable[[Results], float | None]:
    return lambda results: results.ratio(
        "generations w16", "deliveries_per_s", f"{name}, {server}", f"{peer}, {server}"
    )


def _more_memory(server: str) -> Callable[[Results], float | None]:
    """How much more a connection of the second generation takes."""

    def value(results: Results) -> float | None:
        first, second = (
            results.median("generations memory", f"{name}, {server}", "kib_per_connection")
            for name in (FIRST, SECOND)
        )
        return None if first is None or second is None else second - first

    return value


def _p99(results: Results) -> float | None:
    return results.ratio("latency", "p99_ms", OURS_DAPHNE, MEMORY_DAPHNE)


GOALS = (
    Goal("daphne, w1: Channels in-memory", 30, _deliveries(1, OURS_DAPHNE, MEMORY_DAPHNE)),
    Goal("daphne, w1: Channels pubsub", 15, _deliveries(1, OURS_DAPHNE, REDIS_DAPHNE)),
    Goal("daphne, w16: Channels in-memory", 120, _deliveries(16, OURS_DAPHNE, MEMORY_DAPHNE)),
    Goal("daphne, p99 at 4/s: p99 of Channels in-memory at 1/s", 0.25, _p99, at_most=True),
    Goal("uvicorn, w1: Channels in-memory", 35, _deliveries(1, OURS_UVICORN, MEMORY_UVICORN)),
    Goal("uvicorn, w16: Channels in-memory", 250, _deliveries(16, OURS_UVICORN, MEMORY_UVICORN)),
    Goal("uvicorn, w1: socket.io", 0.8, _deliveries(1, OURS_UVICORN, NODE_SOCKETIO)),
    Goal("uvicorn, w16: socket.io", 4, _deliveries(16, OURS_UVICORN, NODE_SOCKETIO)),
    Goal("uvicorn, w1: python-socketio", 4, _deliveries(1, OURS_UVICORN, PYTHON_SOCKETIO)),
    Goal("daphne, w1, CPU per delivery: cfan", 4, _cpu(OURS_DAPHNE), at_most=True),
    Goal("uvicorn, w1, CPU per delivery: cfan", 4, _cpu(OURS_UVICORN), at_most=True),
    *(
        goal
        for name, cell, kib in (("daphne", OURS_DAPHNE, 28), ("uvicorn", OURS_UVICORN, 26))
        for goal in (
            Goal(
                f"{name}, memory of an idle connection, 1000 of them",
                kib,
                _median("memory", cell, "kib_per_connection"),
                at_most=True,
                unit=" KiB",
            ),
            Goal(
                f"{name}, failures among 10 000 connections",
                0,
                _median("many", cell, "failed"),
                at_most=True,
                unit="",
            ),
            Goal(
                f"{name}, CPU of 10 000 idle connections",
                5,
                _median("many", cell, "idle_cpu", 100),
                at_most=True,
                unit=" %",
            ),
        )
    ),
    Goal("daphne, connections per CPU: stock", 1.3, _connections(OURS_DAPHNE, STOCK_DAPHNE)),
    Goal("uvicorn, connections per CPU: stock", 1.3, _connections(OURS_UVICORN, STOCK_UVICORN)),
    Goal("daphne, pings/s: stock echo", 3, _commands(OURS_DAPHNE, STOCK_DAPHNE)),
    Goal("uvicorn, pings/s: stock echo", 4, _commands(OURS_UVICORN, STOCK_UVICORN)),
    *(
        Goal(
            f"2 processes, w1, CPU per delivery: {name}",
            limit,
            _spread(1, "cpu_us_per_delivery", peer),
            at_most=True,
        )
        for name, peer, limit in (
            ("1 process, memory", ONE_MEMORY, 1.25),
            ("1 process, Redis", ONE_REDIS, 1.25),
            ("2 of Channels pubsub", TWO_PUBSUB, 0.07),
        )
    ),
    *(
        goal
        for server in ("daphne", "uvicorn")
        for goal in (
            Goal(
                f"{server}, w16: second generation, first", 1, _generations(SECOND, FIRST, server)
            ),
            Goal(f"{server}, w16: half and half, first", 0.9, _generations(HALF, FIRST, server)),
            Goal(f"{server}, w16: half and half, second", 0.9, _generations(HALF, SECOND, server)),
            Goal(f"{server}, w16: deltas, second", 0.9, _generations(DELTAS, SECOND, server)),
            Goal(
                f"{server}, second generation, more memory of a connection",
                1,
                _more_memory(server),
                at_most=True,
                unit=" KiB",
            ),
            Goal(
                f"{server}, second generation, CPU of 10 000 idle connections",
                6,
                _median("generations many", f"{SECOND}, {server}", "idle_cpu", 100),
                at_most=True,
                unit=" %",
            ),
        )
    ),
    Goal(
        "2 processes, w16, messages in a frame",
        3,
        _median("cluster w16", TWO_REDIS, "deliveries_per_frame"),
        unit="",
    ),
    Goal("publish, calls/s: group_send, pubsub", 20, _calls(PUBLISH, SEND_PUBSUB)),
    Goal("publish, calls/s: group_send, core", 20, _calls(PUBLISH, SEND_CORE)),
    Goal("apublish with history, calls/s: redis.asyncio", 5, _calls(APUBLISH_KEPT, REDIS_PY)),
)
