"""Figures of this process: what the node says of itself, to other nodes and to operators."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from realtime.cluster.survey import SLOT_SECONDS, NodeFigures
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.metrics import Counters
from realtime.node.hub import Hub
from realtime.node.loop_lag import LoopLag
from realtime.node.samples import CLOSED, Reading
from realtime.timers import Timers

_STATM = Path("/proc/self/statm")
"""Where Linux says how much memory this process uses, in pages."""


class Figures:
    """What a node says of itself."""

    def __init__(
        self,
        identity: tuple[str, str, str],
        hub: Hub,
        counters: Counters,
        timers: Timers,
        subscriptions: Callable[[], int],
        is_draining: Callable[[], bool],
        loop_lag: LoopLag,
    ) -> None:
        """
        Args:
            identity: ID, name and version of the node.
            subscriptions: returns the number of subscriptions of its clients.
            is_draining: returns whether it closes its clients, because it ends.
            loop_lag: measures that of the node.
        """
        self._identity = identity
        self._hub = hub
        self._counters = counters
        self._timers = timers
        self._subscriptions = subscriptions
        self._is_draining = is_draining
        self._loop_lag = loop_lag
        self._started_at = timers.now()

    def describe(self) -> NodeInfo:
        """Describe the node to clients and other nodes."""
        return NodeInfo(
            *self._identity,
            num_clients=len(self._hub.clients),
            num_users=len(self._hub.users),
            num_channels=len(self._hub.feeds),
            uptime=int(self._timers.now() - self._started_at),
        )

    def status(self) -> NodeStatus:
        """Describe the node to operators."""
        return NodeStatus(
            **msgspec.structs.asdict(self.describe()),
            messages_published=self._counters.published,
            messages_delivered=self._counters.delivered,
            num_subs=self._subscriptions(),
            loop_lag=round(self._loop_lag.sustained, 4),
        )

    def now(self) -> NodeFigures:
        """Return all of its figures."""
        status = self.status()
        return NodeFigures(
            node=status.uid,
            name=status.name,
            version=status.version,
            uptime=self._timers.now() - self._started_at,
            connections=status.num_clients,
            users=status.num_users,
            channels=status.num_channels,
            subscriptions=status.num_subs,
            published=status.messages_published,
            delivered=status.messages_delivered,
            draining=self._is_draining(),
            loop_lag=self._loop_lag.seconds,
            cpu_seconds=time.process_time(),
            memory=_memory(),
        )

    def reading(self, refused: int, redis_seconds: float | None) -> Reading:
        """Return the figures of which samples are made: whole numbers, in the units below.

        Args:
            refused: connections that were refused since the start.
            redis_seconds: how long Redis took for the last heartbeat.
        """
        counters = self._counters
        recoveries = counters.recoveries.counts()
        closed = counters.disconnects.counts()
        return Reading(
            states={
                "connections": len(self._hub.clients),
                "users": len(self._hub.users),
                "channels": len(self._hub.feeds),
                "subscriptions": self._subscriptions(),
                "lag": round(self._loop_lag.of_last(SLOT_SECONDS) * 1e6),  # microseconds
                "redis": round((redis_seconds or 0) * 1e6),  # microseconds
                "memory": (_memory() or 0) // 1024,  # KiB
            },
            totals={
                "published": counters.published,
                "delivered": counters.delivered,
                "opened": counters.opened,
                "refused": refused,
                "commands": counters.commands,
                "errors": sum(counters.command_errors.counts().values()),
                "recovered": recoveries.get(("recovered",), 0),
                "not_recovered": recoveries.get(("not recovered",), 0),
                "cpu": round(time.process_time() * 1e6),  # microseconds
                **{f"{CLOSED}{code}": number for (code,), number in closed.items()},
            },
        )


def _memory() -> int | None:
    """Return the bytes of memory that this process uses; None where the system does not say."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
