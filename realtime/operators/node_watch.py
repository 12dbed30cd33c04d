"""Node watch: a node notes which other nodes come, fall silent, come back and go.

It looks at the list of nodes every `INTERVAL`, from the state below to that of the list:

    unknown ──listed──► ALIVE ──no heartbeats──► SILENT ──heartbeats──► ALIVE
                          │                        │
                          └──not listed, twice──►  └──not listed──► unknown: it died

A node that stops leaves the list at once. One look without it is no proof: where the engine lost
its data, the list is empty until the next heartbeats.
"""

from __future__ import annotations

from realtime.cluster.context import Context
from realtime.engine.nodes import Cluster, NodeStatus
from realtime.errors import EngineUnavailable
from realtime.operators.event_log import EventLog

INTERVAL = 10.0
"""Seconds between two looks; other nodes look at other moments."""


class NodeWatch:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, context: Context, cluster: Cluster, events: EventLog) -> None:
        self._uid, self._timers = context.uid, context.timers
        self._cluster = cluster
        self._events = events
        self._timer = context.timers.timer(lambda: context.spawn(self._look()))
        self._known: dict[str, NodeStatus] | None = None
        """Node ID → the node, as it was seen last; None before the first look."""
        self._unlisted: set[str] = set()
        """IDs of nodes that were alive, and were not listed at the last look."""

    def start(self) -> None:
        """Begin to look."""
        self._timer.set(self._timers.now())

    async def _look(self) -> None:
        try:
            self._compare({node.uid: node for node in await self._cluster.statuses()})
        except EngineUnavailable:
            pass  # the heartbeat logs that
        finally:
            self._timer.set(self._timers.now() + INTERVAL)

    def _compare(self, listed: dict[str, NodeStatus]) -> None:
        listed.pop(self._uid, None)
        known, unlisted = self._known, self._unlisted
        self._known, self._unlisted = listed, set()
        if known is None:
            return
        for uid, node in listed.items():
            before = known.get(uid)
            if before is None and node.alive:
                self._note("node_started", node)
            elif before is not None and before.alive != node.alive:
                self._note("node_back" if node.alive else "node_silent", node)
        for uid, node in known.items():
            if uid in listed or not node.alive:
                continue
            if uid in unlisted:
                self._note("node_stopped", node)
            else:
                listed[uid] = node  # until the next look
                self._unlisted.add(uid)

    def _note(self, kind: str, node: NodeStatus) -> None:
        self._events.add(kind, node.name, subject=node.uid)
