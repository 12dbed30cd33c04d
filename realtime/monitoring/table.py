"""The table of metrics: names, types, labels, meanings. docs/metrics.md is made from it.

Labels are transports, protocols, namespaces, kinds, methods and codes: there are few of each. Names
of channels and users are never labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


class Metric(NamedTuple):
    """One metric. A counter only grows, from 0 at the start of the process."""

    name: str
    meaning: str
    labels: tuple[str, ...]

    @property
    def type(self) -> str:
        """Follows from the name."""
        if self.name == "realtime_hook_seconds":
            return HISTOGRAM
        return COUNTER if self.name.endswith("_total") else GAUGE


def _metrics(meanings: Mapping[str, str]) -> list[Metric]:
    """Return metrics. `meanings`: by name, with the labels in braces."""
    found = []
    for key, meaning in meanings.items():
        name, _, labels = key.removesuffix("}").partition("{")
        found.append(Metric(name, meaning, tuple(labels.split(",") if labels else ())))
    return found


PROCESS = _metrics(
    {
        "realtime_start_time_seconds": "When this node started, Unix time.",
        "realtime_draining": "1 if new clients should go to another node, otherwise 0.",
        "realtime_connections{transport,protocol}": (
            "Clients that are connected. protocol: the generation, v1 or v2."
        ),
        "realtime_users": "Users with a connected client, anonymous ones as one.",
        "realtime_channels{namespace}": "Channels with a subscriber at this node.",
        "realtime_subscriptions": "Subscriptions of the clients of this node.",
        "realtime_connections_opened_total": "Connections that were opened.",
        "realtime_connections_refused_total": (
            "Connections that were refused with status 503, because of a limit or of overload."
        ),
        "realtime_newcomers": "Clients that wait for their turn to connect.",
        "realtime_disconnects_total{code}": (
            "Connections that ended, by the close code that the client got, or by that of the error"
            " that refused its HTTP request; 0: the client went."
        ),
        "realtime_command_errors_total{method,code}": (
            "Commands of clients that were answered with an error."
        ),
        "realtime_published_total{source}": (
            "Publications made in this process. source: client, or server for those of the site and"
            " of the server API."
        ),
        "realtime_delivered_total{namespace}": (
            "Publications pushed to clients, counted once for each client."
        ),
        "realtime_recoveries_total{result}": (
            "Subscriptions whose client asked for what it missed. result: recovered, or not"
            " recovered."
        ),
        "realtime_gaps_total": (
            "Streams that were read because publications were missing, or perhaps were."
        ),
        "realtime_lost_streams_total": (
            "Streams that did not go on where this node was: their subscribers recovered anew."
        ),
        "realtime_interruptions_total": "Interruptions of the connection to Redis or PostgreSQL.",
        "realtime_signals_dropped_total": (
            "Signals that were dropped because their receivers were too slow."
        ),
        "realtime_hook_seconds{kind}": (
            "How long hooks and proxy endpoints took to answer. kind: connect, refresh, subscribe,"
            " publish, map_put, rpc or message."
        ),
        "realtime_redis_seconds": "How long Redis or PostgreSQL took for the last heartbeat.",
        "realtime_loop_lag_seconds": (
            "How late the event loop was: the largest lag of the last 30 seconds."
        ),
    }
)
"""Metrics of one process."""

PENDING = _metrics(
    {
        "realtime_pending_rows{state}": (
            "Rows in the database, the same in each process. state: waiting, scheduled or parked."
        ),
        "realtime_pending_oldest_seconds": (
            "How long the first of the waiting rows has been due; 0: none waits."
        ),
        "realtime_pending_relayed_total{result}": (
            "Rows that the relay of this process worked on. result: published; refused, each"
            " attempt; parked, after the last one; or failed, because the engine or the database"
            " was away."
        ),
    }
)
"""Metrics of durable publications, of a process with the app `realtime.pending`."""

SERVICE = _metrics(
    {
        "realtime_service_nodes": "Nodes that are alive.",
        "realtime_service_connections": "Clients that are connected.",
        "realtime_service_users": "Users at each node; who is at two nodes counts twice.",
        "realtime_service_channels": (
            "Channels at each node; a channel with subscribers at two nodes counts twice."
        ),
        "realtime_service_subscriptions": "Subscriptions.",
        "realtime_service_published": (
            "Publications made in the processes of these nodes; falls when a node ends."
        ),
        "realtime_service_delivered": (
            "Publications pushed to clients by these nodes; falls when a node ends."
        ),
    }
)
"""Metrics of the whole service, sums over the nodes that are alive: with `?scope=service`."""

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*PROCESS, *PENDING, *SERVICE)}
