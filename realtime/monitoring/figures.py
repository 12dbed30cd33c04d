"""Figures: the values of all metrics, read from a node when they are asked for.

Nothing is kept for them on the way of a message. What exists as a count is taken as it is. What has
to be counted, clients and channels, is counted in slices, between which the loop has its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, TypeVar

from realtime.engine.nodes import NodeStatus
from realtime.metrics import Durations
from realtime.node.feed import ChannelFeed
from realtime.node.node import Node
from realtime.node.subscriber import Subscriber

T = TypeVar("T")

SLICE = 500
"""Clients or channels that are counted in one turn of the loop: less than half a millisecond."""

Labels: TypeAlias = tuple[str, ...]
Value: TypeAlias = float | Durations
Figures: TypeAlias = Mapping[str, Mapping[Labels, Value]]
"""Name of a metric → values of its labels → value."""


async def of_process(node: Node) -> Figures:
    """Read the metrics of this process."""
    counters = node.counters
    connections = await _counted(node.hub.clients.values(), _transport)
    channels = await _counted(node.hub.feeds.values(), _namespace)
    redis_seconds = node.redis_seconds
    return {
        "realtime_start_time_seconds": _one(time.time() - node.describe().uptime),
        "realtime_draining": _one(node.is_draining),
        "realtime_connections": connections,
        "realtime_users": _one(len(node.hub.users)),
        "realtime_channels": channels,
        "realtime_subscriptions": _one(node.subscriptions.count),
        "realtime_connections_opened_total": _one(counters.opened),
        "realtime_connections_refused_total": _one(node.admission.refused),
        "realtime_newcomers": _one(node.admission.queue.waiting),
        "realtime_disconnects_total": counters.disconnects.counts(),
        "realtime_command_errors_total": counters.command_errors.counts(),
        "realtime_published_total": {
            ("client",): counters.published_by_clients,
            ("server",): counters.published_by_server,
        },
        "realtime_delivered_total": {
            (namespace,): count for namespace, count in counters.delivered_in().items()
        },
        "realtime_recoveries_total": counters.recoveries.counts(),
        "realtime_gaps_total": _one(node.subscriptions.gaps),
        "realtime_lost_streams_total": _one(counters.lost_streams),
        "realtime_interruptions_total": _one(counters.interruptions),
        "realtime_signals_dropped_total": _one(node.events.dropped),
        "realtime_hook_seconds": {(kind,): each for kind, each in node.hooks.seconds.items()},
        "realtime_redis_seconds": {} if redis_seconds is None else _one(redis_seconds),
        "realtime_loop_lag_seconds": _one(node.loop_lag.seconds),
    }


async def of_service(node: Node) -> Figures:
    """Add up what the nodes that are alive announce.

    Raises:
        EngineUnavailable: The engine did not answer, or refused.
    """
    nodes = [each for each in await node.statuses() if each.alive]

    def total(figure: Callable[[NodeStatus], int]) -> Mapping[Labels, Value]:
        return _one(sum(map(figure, nodes)))

    return {
        "realtime_service_nodes": _one(len(nodes)),
        "realtime_service_connections": total(lambda each: each.num_clients),
        "realtime_service_users": total(lambda each: each.num_users),
        "realtime_service_channels": total(lambda each: each.num_channels),
        "realtime_service_subscriptions": total(lambda each: each.num_subs),
        "realtime_service_published": total(lambda each: each.messages_published),
        "realtime_service_delivered": total(lambda each: each.messages_delivered),
    }


def _one(value: float) -> Mapping[Labels, Value]:
    return {(): value}


async def _counted(items: Collection[T], labels: Callable[[T], Labels]) -> Mapping[Labels, Value]:
    """Count items by their labels, a slice in each turn of the loop."""
    counts: Counter[Labels] = Counter()
    at_this_moment = list(items)
    for start in range(0, len(at_this_moment), SLICE):
        counts.update(map(labels, at_this_moment[start : start + SLICE]))
        await asyncio.sleep(0)
    return dict(counts)


def _transport(client: Subscriber) -> Labels:
    return client.transport.name, f"v{client.codec.generation}"


def _namespace(feed: ChannelFeed) -> Labels:
    return (feed.deliveries.namespace,)
