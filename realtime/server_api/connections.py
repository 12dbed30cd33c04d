"""Nodes, and the connections of users and channels at all of them, as plain functions.

They raise what `server_api.queries` raise, and have async versions, too. Where all nodes are
asked, the result names those that do not answer within a second. A shared engine that is
slow adds its own time limit to each step of the survey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from realtime import payload
from realtime.cluster.survey import (
    MAX_CONNECTIONS,
    ClientReport,
    ConnectionsAnswer,
    SubscribersAnswer,
    SurveyResult,
)
from realtime.engine.nodes import NodeStatus
from realtime.hooks.site_values import user_id
from realtime.server_api import operations
from realtime.server_api.arguments import distinct
from realtime.serving import serving


class Connection(msgspec.Struct, frozen=True):
    """One connection of a user."""

    client: str
    """Client ID."""
    user: str
    node: str
    """Name of the node that serves it."""
    transport: str
    """"websocket" or "sockjs"."""
    channels: list[str]
    """The first of its subscriptions, client-side or server-side."""
    num_channels: int
    """The number of its subscriptions."""
    seconds: float
    """Seconds since it was opened."""
    info: Any = None
    """Connection info, if there is one."""


class Connections(list[Connection]):
    """The connections of a user, oldest first, and the nodes that were asked."""

    total: int
    """The number of connections at the nodes that answered."""
    truncated: bool
    """Whether some connections, or some of their channels, are left out."""
    num_nodes: int
    """The number of nodes that were asked."""
    missing: list[str]
    """Names of the nodes that did not answer."""


class Subscribers(dict[str, int]):
    """Channel → number of subscribers, in the order asked for, and the nodes that were asked."""

    num_nodes: int
    """The number of nodes that were asked."""
    missing: list[str]
    """Names of the nodes that did not answer; their subscribers are not counted."""


def nodes() -> list[NodeStatus]:
    """Return the nodes of the service with their counters; those that died come last.

    A node that dies counts as dead ten seconds after its last heartbeat, and is listed for five
    more minutes. A node that was stopped is not listed.
    """
    return serving.call(operations.nodes, async_name="anodes")


async def anodes() -> list[NodeStatus]:
    """Return the nodes of the service with their counters. Async version of `nodes`."""
    return await serving.acall(operations.nodes)


def connections(user: Any) -> Connections:
    """Return the connections of a user at every node, 1000 at most. Waits a second for nodes.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.

    Raises:
        TypeError: it is neither a user nor an ID.
    """
    user = user_id(user)
    work = partial(operations.connections, user=user)
    return _connections(user, serving.call(work, async_name="aconnections"))


async def aconnections(user: Any) -> Connections:
    """Return the connections of a user at every node. Async version of `connections`."""
    user = user_id(user)
    return _connections(user, await serving.acall(partial(operations.connections, user=user)))


def subscribers(channels: Iterable[str]) -> Subscribers:
    """Return the numbers of subscribers of channels, observers left out. Waits a second for nodes.

    Args:
        channels: the names of the channels, 1000 at most.

    Raises:
        TypeError: `channels` is not a list of names.
        LimitExceeded: there are more than 1000 channels.
    """
    names = distinct(channels)
    work = partial(operations.subscribers, channels=names)
    return as_subscribers(names, serving.call(work, async_name="asubscribers"))


async def asubscribers(channels: Iterable[str]) -> Subscribers:
    """Return the numbers of subscribers of channels. Async version of `subscribers`."""
    names = distinct(channels)
    return as_subscribers(
        names, await serving.acall(partial(operations.subscribers, channels=names))
    )


def round_trip() -> float | None:
    """Measure a round trip to the engine.

    Returns:
        Seconds, the median of three; with several shards, of the slowest one. None with the
        memory engine.
    """
    return serving.call(operations.round_trip, async_name="around_trip")


async def around_trip() -> float | None:
    """Measure a round trip to the engine. Async version of `round_trip`."""
    return await serving.acall(operations.round_trip)


# results as Python objects


def _connections(user: str, surveyed: SurveyResult[ConnectionsAnswer]) -> Connections:
    result = Connections(
        _connection(report, user, answer.name)
        for answer in surveyed.answers
        for report in answer.connections
    )
    result.sort(key=lambda connection: -connection.seconds)
    result.total = sum(answer.total for answer in surveyed.answers)
    del result[MAX_CONNECTIONS:]
    result.truncated = result.total > len(result) or any(
        connection.num_channels > len(connection.channels) for connection in result
    )
    result.num_nodes = len(surveyed.answers) + len(surveyed.missing)
    result.missing = surveyed.missing
    return result


def _connection(report: ClientReport, user: str, node: str) -> Connection:
    return Connection(
        client=report.client,
        user=user,
        node=node,
        transport=report.transport,
        channels=report.channels,
        num_channels=report.num_channels,
        seconds=report.seconds,
        info=None if report.info is None else payload.value(report.info),
    )


def as_subscribers(names: Sequence[str], surveyed: SurveyResult[SubscribersAnswer]) -> Subscribers:
    """Return what `subscribers` returns: the answers of the nodes, added up."""
    result = Subscribers((name, 0) for name in names)
    for answer in surveyed.answers:
        for name, number in zip(names, answer.numbers, strict=True):
            result[name] += number
    result.num_nodes = len(surveyed.answers) + len(surveyed.missing)
    result.missing = surveyed.missing
    return result
