"""What operators want to know of the service as a whole, as plain functions.

They work, and fail, as those of `service` do, and have twins for coroutines too. Where all
nodes are asked, those that do not answer within a second are named in the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from realtime import payload
from realtime.cluster.survey import (
    MAX_CONNECTIONS,
    ClientReport,
    ConnectionsAnswer,
    SubscribersAnswer,
    Surveyed,
)
from realtime.engine.base import NodeStatus
from realtime.server_api import operations
from realtime.serving import serving


class Connection(msgspec.Struct, frozen=True):
    """One connection of a user."""

    client: str
    """Connection ID."""
    user: str
    node: str
    """Name of the node that serves it."""
    transport: str
    """"websocket" or "sockjs"."""
    channels: list[str]
    """What it is subscribed to, by itself or by the server; of very many only the first."""
    num_channels: int
    """How many these are."""
    seconds: float
    """Since it was opened."""
    info: Any = None
    """Connection info, if there is any."""


class Connections(list[Connection]):
    """The connections of a user, the oldest first, and who was asked."""

    total: int
    """How many there are, as far as nodes answered."""
    truncated: bool
    """Whether some of them, or of their channels, are not told."""
    num_nodes: int
    """Nodes that were asked."""
    missing: list[str]
    """Names of those that did not answer."""


class Subscribers(dict[str, int]):
    """Channel → connections that are subscribed, in the order asked for, and who was asked."""

    num_nodes: int
    """Nodes that were asked."""
    missing: list[str]
    """Names of those that did not answer; their subscribers are not counted."""


def nodes() -> list[NodeStatus]:
    """The processes of the service with their counters, those that died not long ago last.

    A process that died without saying so is not alive ten seconds after its last sign of life,
    and is listed for five minutes more. One that ended in order is not listed.
    """
    return serving.call(operations.nodes, async_name="anodes")


async def anodes() -> list[NodeStatus]:
    """Twin of `nodes`."""
    return await serving.acall(operations.nodes)


def connections(user: str) -> Connections:
    """The connections of a user ID at every node, 1000 at most. Waits a second for answers."""
    return _connections(
        user,
        serving.call(
            lambda member: operations.connections(member, user), async_name="aconnections"
        ),
    )


async def aconnections(user: str) -> Connections:
    """Twin of `connections`."""
    return _connections(
        user, await serving.acall(lambda member: operations.connections(member, user))
    )


def subscribers(channels: Iterable[str]) -> Subscribers:
    """How many connections are subscribed to channels, 1000 channels at most.

    Waits a second for the answers of all nodes. Operators who watch are not counted.

    Raises:
        LimitExceeded: more channels.
    """
    names = _distinct(channels)
    return _subscribers(
        names,
        serving.call(
            lambda member: operations.subscribers(member, names), async_name="asubscribers"
        ),
    )


async def asubscribers(channels: Iterable[str]) -> Subscribers:
    """Twin of `subscribers`."""
    names = _distinct(channels)
    return _subscribers(
        names, await serving.acall(lambda member: operations.subscribers(member, names))
    )


def round_trip() -> float | None:
    """Seconds that a round trip to Redis takes just now; None with the memory engine.

    The median of three; with several shards that of the slowest one.
    """
    return serving.call(operations.round_trip, async_name="around_trip")


async def around_trip() -> float | None:
    """Twin of `round_trip`."""
    return await serving.acall(operations.round_trip)


def _distinct(channels: Iterable[str]) -> list[str]:
    if isinstance(channels, str):
        raise TypeError("channels is a list of names, not one name")
    return list(dict.fromkeys(channels))


# results in Python's words


def _connections(user: str, surveyed: Surveyed[ConnectionsAnswer]) -> Connections:
    found = Connections(
        _connection(report, user, answer.name)
        for answer in surveyed.answers
        for report in answer.connections
    )
    found.sort(key=lambda connection: -connection.seconds)
    found.total = sum(answer.total for answer in surveyed.answers)
    del found[MAX_CONNECTIONS:]
    found.truncated = found.total > len(found) or any(
        connection.num_channels > len(connection.channels) for connection in found
    )
    found.num_nodes = len(surveyed.answers) + len(surveyed.missing)
    found.missing = surveyed.missing
    return found


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


def _subscribers(names: Sequence[str], surveyed: Surveyed[SubscribersAnswer]) -> Subscribers:
    found = Subscribers((name, 0) for name in names)
    for answer in surveyed.answers:
        for name, number in zip(names, answer.numbers, strict=True):
            found[name] += number
    found.num_nodes = len(surveyed.answers) + len(surveyed.missing)
    found.missing = surveyed.missing
    return found
