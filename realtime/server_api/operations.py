"""The server API as coroutines on a member of the service: what each method checks, and does.

Data are payloads here, and results are messages; `server_api` speaks bytes above this and
`service` Python objects, so both obey the same rules.

Spec: Server HTTP API.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.channel_rules import check_channel
from realtime.cluster.member import Member
from realtime.cluster.survey import ConnectionsAnswer, SubscribersAnswer, Surveyed
from realtime.config.options import ChannelOptions
from realtime.engine.base import NodeInfo, NodeStatus
from realtime.errors import BadRequest, Error, LimitExceeded, NotAvailable
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    UserID,
)

MAX_SURVEYED_CHANNELS = 1000
"""Channels that can be asked about at once."""


async def publish(member: Member, channel: ChannelName, data: Payload) -> None:
    """Publish into a channel.

    Raises:
        BadRequest, NamespaceNotFound
    """
    await member.publish(channel, data, _options(member, channel))


async def broadcast(member: Member, channels: Sequence[ChannelName], data: Payload) -> None:
    """Publish the same data into several channels; see `publish_many`.

    Raises:
        BadRequest, NamespaceNotFound
    """
    await publish_many(member, [(channel, data) for channel in channels])


async def publish_many(member: Member, publications: Sequence[tuple[ChannelName, Payload]]) -> None:
    """Publish into several channels.

    Not atomic: the channels before one that is refused have their publication.

    Raises:
        BadRequest, NamespaceNotFound
    """
    if not publications:
        raise BadRequest
    if len(publications) == 1:
        await publish(member, *publications[0])
        return
    ready: list[tuple[ChannelName, Payload, ChannelOptions]] = []
    refused: Error | None = None
    for channel, data in publications:
        try:
            ready.append((channel, data, _options(member, channel)))
        except Error as error:
            refused = error
            break
    for failure in await member.publish_many(ready):
        if failure is not None:
            raise failure
    if refused is not None:
        raise refused


async def unsubscribe(member: Member, user: UserID, channel: ChannelName) -> None:
    """Unsubscribe a user's connections from a channel, or from all their channels ("").

    Raises:
        BadRequest, NamespaceNotFound
    """
    if not user:
        raise BadRequest
    if channel:
        _options(member, channel)
    await member.unsubscribe_user(user, channel)


async def disconnect(member: Member, user: UserID) -> None:
    """Disconnect a user's connections; they are told not to come back.

    Raises:
        BadRequest
    """
    if not user:
        raise BadRequest
    await member.disconnect_user(user)


async def presence(
    member: Member, channel: ChannelName, *, options: ChannelOptions | None = None
) -> PresenceResult:
    """Return the clients that are subscribed.

    Args:
        options: those of the channel, if the caller has looked them up already.

    Raises:
        BadRequest, NamespaceNotFound: the name is not that of a channel.
        NotAvailable: the channel has no presence.
    """
    if not (options or _options(member, channel)).presence:
        raise NotAvailable
    return PresenceResult(dict(await member.presence.get(channel)))


async def presence_stats(member: Member, channel: ChannelName) -> PresenceStatsResult:
    """How many are subscribed.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    return PresenceStatsResult.of((await presence(member, channel)).presence)


async def history(
    member: Member,
    channel: ChannelName,
    *,
    limit: int | None = None,
    since: int | None = None,
    options: ChannelOptions | None = None,
) -> HistoryResult:
    """Return the publications that a channel keeps, oldest first.

    Args:
        limit: how many at most: the first ones from `since`, or the newest ones without it.
        since: offset to begin at; without it they begin with the oldest.
        options: those of the channel, if the caller has looked them up already.

    Raises:
        BadRequest, NamespaceNotFound: the name is not that of a channel.
        NotAvailable: the channel keeps no history.
    """
    if not (options or _options(member, channel)).keeps_history:
        raise NotAvailable
    if limit is None or since is not None:
        publications = (await member.broker.history(channel, since or 0)).publications
        return HistoryResult(publications[:limit])
    top = (await member.broker.position(channel)).offset
    # what is published between the two reads comes on top
    publications = (await member.broker.history(channel, max(top - limit + 1, 0))).publications
    return HistoryResult(publications[max(len(publications) - limit, 0) :])


async def history_remove(member: Member, channel: ChannelName) -> None:
    """Forget what is kept; offsets go on counting.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    if not _options(member, channel).keeps_history:
        raise NotAvailable
    await member.broker.remove_history(channel)


async def channels(member: Member) -> list[ChannelName]:
    """Channels with at least one subscriber, sorted."""
    return sorted(await member.channels())


async def info(member: Member) -> list[NodeInfo]:
    """The nodes that are alive."""
    return await member.nodes()


async def nodes(member: Member) -> list[NodeStatus]:
    """The nodes that are alive, by name, and then those that died not long ago."""
    return sorted(await member.statuses(), key=lambda node: (not node.alive, node.name, node.uid))


async def connections(member: Member, user: UserID) -> Surveyed[ConnectionsAnswer]:
    """A user's connections at every node.

    Raises:
        BadRequest: anonymous clients have no user ID.
    """
    if not user:
        raise BadRequest
    return await member.connections(user)


async def subscribers(
    member: Member, channels: Sequence[ChannelName]
) -> Surveyed[SubscribersAnswer]:
    """How many subscribers of channels every node has.

    Raises:
        LimitExceeded: more than `MAX_SURVEYED_CHANNELS`.
    """
    if len(channels) > MAX_SURVEYED_CHANNELS:
        raise LimitExceeded
    return await member.subscribers(channels)


async def round_trip(member: Member) -> float | None:
    """Seconds that a round trip to Redis takes just now; None with the memory engine."""
    return None if member.cluster is None else await member.cluster.round_trip()


def _options(member: Member, channel: ChannelName) -> ChannelOptions:
    return check_channel(channel, member.config)
