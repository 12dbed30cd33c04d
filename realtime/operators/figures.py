"""Figures of this process: what the node says of itself to operators."""

from __future__ import annotations

import os
import time
from pathlib import Path

from realtime.node.parts import NodeParts
from realtime.operators.questions import SLOT_SECONDS, NodeFigures
from realtime.operators.samples import CLOSED, Reading

_STATM = Path("/proc/self/statm")
"""Where Linux says how much memory this process uses, in pages."""


class Figures:
    """What a node says of itself to operators."""

    def __init__(self, node: NodeParts) -> None:
        self._node = node

    def now(self) -> NodeFigures:
        """Return all figures of the node."""
        node, status = self._node, self._node.status()
        return NodeFigures(
            node=status.uid,
            name=status.name,
            version=status.version,
            uptime=node.timers.now() - node.started_at,
            connections=status.num_clients,
            users=status.num_users,
            channels=status.num_channels,
            subscriptions=status.num_subs,
            published=status.messages_published,
            delivered=status.messages_delivered,
            draining=node.is_draining,
            loop_lag=node.loop_lag.seconds,
            cpu_seconds=time.process_time(),
            memory=_memory(),
        )

    def reading(self) -> Reading:
        """Return the figures of which samples are made: whole numbers, in the units below."""
        node, counters = self._node, self._node.counters
        recoveries = counters.recoveries.counts()
        closed = counters.disconnects.counts()
        return Reading(
            states={
                "connections": len(node.hub.clients),
                "users": len(node.hub.users),
                "channels": len(node.hub.feeds),
                "subscriptions": node.subscriptions.count,
                "lag": round(node.loop_lag.of_last(SLOT_SECONDS) * 1e6),  # microseconds
                "redis": round((node.redis_seconds or 0) * 1e6),  # microseconds
                "memory": (_memory() or 0) // 1024,  # KiB
            },
            totals={
                "published": counters.published,
                "delivered": counters.delivered,
                "opened": counters.opened,
                "refused": node.admission.refused,
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
