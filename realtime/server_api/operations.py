"""Rules of the server API: one coroutine for each method, on a member of the service.

Data are payloads, and results are messages. `methods` speaks bytes above this, and `functions`
Python objects: both keep the same rules.

All of them raise:
    BadRequest: a name of a channel or user is missing, or is not one.
    NamespaceNotFound: the channel is in no namespace of the configuration.
    EngineUnavailable: Redis refused the command, or did not answer in time.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.channel_rules import check_channel
from realtime.cluster.member import Member
from realtime.cluster.survey import ConnectionsAnswer, SubscribersAnswer, SurveyResult
from realtime.config.options import ChannelOptions
from realtime.engine.base import NodeInfo, NodeStatus
from realtime.errors import BadRequest, Error, LimitExceeded, NoReply, NotAvailable
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    UserID,
)

MAX_SURVEYED_CHANNELS = 1000
"""Channels of one survey."""


async def publish(member: Member, channel: ChannelName, data: Payload) -> None:
    """Publish into a channel."""
    await member.publish(channel, data, check_channel(channel, member.config))


async def broadcast(member: Member, channels: Sequence[ChannelName], data: Payload) -> None:
    """Publish the same data into several channels; see `publish_many`."""
    await publish_many(member, [(channel, data) for channel in channels])


async def publish_many(member: Member, publications: Sequence[tuple[ChannelName, Payload]]) -> None:
    """Publish into several channels.

    Not atomic: the channels before one that is refused get their publication.

    Raises:
        BadRequest: there are no publications, or a name is not one of a channel.
        EngineUnavailable: none was published.
        NoReply: some may have been published.
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
            ready.append((channel, data, check_channel(channel, member.config)))
        except Error as error:
            refused = error
            break
    results = await member.publish_many(ready)
    failures = [result for result in results if result is not None]
    if failures:
        unknown = [failure for failure in failures if isinstance(failure, NoReply)]
        if not unknown and len(failures) < len(results):
            raise NoReply(str(failures[0])) from failures[0]
        raise (unknown or failures)[0]
    if refused is not None:
        raise refused


async def unsubscribe(member: Member, user: UserID, channel: ChannelName) -> None:
    """Unsubscribe a user's connections from a channel; "" means from all their channels."""
    if not user:
        raise BadRequest
    if channel:
        check_channel(channel, member.config)
    await member.unsubscribe_user(user, channel)


async def disconnect(member: Member, user: UserID) -> None:
    """Disconnect a user's connections; their clients do not reconnect."""
    if not user:
        raise BadRequest
    await member.disconnect_user(user)


async def presence(
    member: Member, channel: ChannelName, *, options: ChannelOptions | None = None
) -> PresenceResult:
    """Return the clients that are subscribed to a channel.

    Args:
        member: the member of the service that this process is.
        channel: the name of the channel.
        options: those of the channel, if the caller has looked them up already.

    Raises:
        NotAvailable: the channel has no presence.
    """
    if not (options or check_channel(channel, member.config)).presence:
        raise NotAvailable
    return PresenceResult(dict(await member.presence.get(channel)))


async def presence_stats(member: Member, channel: ChannelName) -> PresenceStatsResult:
    """Return the numbers of clients and users that are subscribed to a channel.

    Raises:
        NotAvailable: the channel has no presence.
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
    """Return the history of a channel, oldest publication first.

    Args:
        member: the member of the service that this process is.
        channel: the name of the channel.
        limit: the number of publications at most: the first ones from `since`, or the newest ones
            without it.
        since: the offset to begin at; without it the oldest publication comes first.
        options: those of the channel, if the caller has looked them up already.

    Raises:
        NotAvailable: the channel has no history.
    """
    if not (options or check_channel(channel, member.config)).keeps_history:
        raise NotAvailable
    if limit is None or since is not None:
        publications = (await member.broker.history(channel, since or 0)).publications
        return HistoryResult(publications[:limit])
    top = (await member.broker.position(channel)).offset
    # what is published between the two reads comes on top
    publications = (await member.broker.history(channel, max(top - limit + 1, 0))).publications
    return HistoryResult(publications[max(len(publications) - limit, 0) :])


async def history_remove(member: Member, channel: ChannelName) -> None:
    """Remove the history of a channel; offsets continue from where they were.

    Raises:
        NotAvailable: the channel has no history.
    """
    if not check_channel(channel, member.config).keeps_history:
        raise NotAvailable
    await member.broker.remove_history(channel)


async def channels(member: Member) -> list[ChannelName]:
    """Return the channels that have a subscriber, sorted."""
    return sorted(await member.channels())


async def info(member: Member) -> list[NodeInfo]:
    """Return the nodes that are alive."""
    return await member.nodes()


async def nodes(member: Member) -> list[NodeStatus]:
    """Return the nodes that are alive, by name, and then those that died recently."""
    return sorted(await member.statuses(), key=lambda node: (not node.alive, node.name, node.uid))


async def connections(member: Member, user: UserID) -> SurveyResult[ConnectionsAnswer]:
    """Return a user's connections at every node.

    Raises:
        BadRequest: anonymous clients have no user ID.
    """
    if not user:
        raise BadRequest
    return await member.connections(user)


async def subscribers(
    member: Member, channels: Sequence[ChannelName]
) -> SurveyResult[SubscribersAnswer]:
    """Return the numbers of subscribers of channels at every node.

    Raises:
        LimitExceeded: there are more than `MAX_SURVEYED_CHANNELS` channels.
    """
    if len(channels) > MAX_SURVEYED_CHANNELS:
        raise LimitExceeded
    return await member.subscribers(channels)


async def round_trip(member: Member) -> float | None:
    """Measure a round trip to Redis, in seconds; None with the memory engine."""
    return None if member.cluster is None else await member.cluster.round_trip()
