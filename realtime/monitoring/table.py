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
    type: str
    meaning: str
    labels: tuple[str, ...] = ()


PROCESS = (
    Metric("realtime_start_time_seconds", GAUGE, "When this node started, Unix time."),
    Metric("realtime_draining", GAUGE, "1 if new clients should go to another node, otherwise 0."),
    Metric(
        "realtime_connections",
        GAUGE,
        "Clients that are connected. protocol: the generation, v1 or v2.",
        ("transport", "protocol"),
    ),
    Metric("realtime_users", GAUGE, "Users with a connected client, anonymous ones as one."),
    Metric("realtime_channels", GAUGE, "Channels with a subscriber at this node.", ("namespace",)),
    Metric("realtime_subscriptions", GAUGE, "Subscriptions of the clients of this node."),
    Metric("realtime_connections_opened_total", COUNTER, "Connections that were opened."),
    Metric(
        "realtime_connections_refused_total",
        COUNTER,
        "Connections that were refused with status 503, because of a limit or of overload.",
    ),
    Metric("realtime_newcomers", GAUGE, "Clients that wait for their turn to connect."),
    Metric(
        "realtime_disconnects_total",
        COUNTER,
        "Connections that ended, by the close code that the client got, or by that of the error"
        " that refused its HTTP request; 0: the client went.",
        ("code",),
    ),
    Metric(
        "realtime_command_errors_total",
        COUNTER,
        "Commands of clients that were answered with an error.",
        ("method", "code"),
    ),
    Metric(
        "realtime_published_total",
        COUNTER,
        "Publications made in this process. source: client, or server for those of the site and"
        " of the server API.",
        ("source",),
    ),
    Metric(
        "realtime_delivered_total",
        COUNTER,
        "Publications pushed to clients, counted once for each client.",
        ("namespace",),
    ),
    Metric(
        "realtime_recoveries_total",
        COUNTER,
        "Subscriptions whose client asked for what it missed. result: recovered, or not recovered.",
        ("result",),
    ),
    Metric(
        "realtime_gaps_total",
        COUNTER,
        "Streams that were read because publications were missing, or perhaps were.",
    ),
    Metric(
        "realtime_lost_streams_total",
        COUNTER,
        "Streams that did not go on where this node was: their subscribers recovered anew.",
    ),
    Metric(
        "realtime_interruptions_total",
        COUNTER,
        "Interruptions of the connection to Redis or PostgreSQL.",
    ),
    Metric(
        "realtime_signals_dropped_total",
        COUNTER,
        "Signals that were dropped because their receivers were too slow.",
    ),
    Metric(
        "realtime_hook_seconds",
        HISTOGRAM,
        "How long hooks and proxy endpoints took to answer. kind: connect, refresh, subscribe,"
        " publish, rpc or message.",
        ("kind",),
    ),
    Metric(
        "realtime_redis_seconds", GAUGE, "How long Redis or PostgreSQL took for the last heartbeat."
    ),
    Metric(
        "realtime_loop_lag_seconds",
        GAUGE,
        "How late the event loop was: the largest lag of the last 30 seconds.",
    ),
)
"""Metrics of one process."""

PENDING = (
    Metric(
        "realtime_pending_rows",
        GAUGE,
        "Rows in the database, the same in each process. state: waiting, scheduled or parked.",
        ("state",),
    ),
    Metric(
        "realtime_pending_oldest_seconds",
        GAUGE,
        "How long the first of the waiting rows has been due; 0: none waits.",
    ),
    Metric(
        "realtime_pending_relayed_total",
        COUNTER,
        "Rows that the relay of this process worked on. result: published; refused, each attempt;"
        " parked, after the last one; or failed, because the engine or the database was away.",
        ("result",),
    ),
)
"""Metrics of durable publications, of a process with the app `realtime.pending`."""

SERVICE = (
    Metric("realtime_service_nodes", GAUGE, "Nodes that are alive."),
    Metric("realtime_service_connections", GAUGE, "Clients that are connected."),
    Metric(
        "realtime_service_users", GAUGE, "Users at each node; who is at two nodes counts twice."
    ),
    Metric(
        "realtime_service_channels",
        GAUGE,
        "Channels at each node; a channel with subscribers at two nodes counts twice.",
    ),
    Metric("realtime_service_subscriptions", GAUGE, "Subscriptions."),
    Metric(
        "realtime_service_published",
        GAUGE,
        "Publications made in the processes of these nodes; falls when a node ends.",
    ),
    Metric(
        "realtime_service_delivered",
        GAUGE,
        "Publications pushed to clients by these nodes; falls when a node ends.",
    ),
)
"""Metrics of the whole service, sums over the nodes that are alive: with `?scope=service`."""

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*PROCESS, *PENDING, *SERVICE)}
