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
from realtime.cluster.member import Member, NewPublication
from realtime.cluster.survey import ConnectionsAnswer, SubscribersAnswer, SurveyResult
from realtime.config.options import ChannelOptions
from realtime.engine.base import NodeInfo, NodeStatus
from realtime.errors import (
    BadRequest,
    EngineUnavailable,
    Error,
    LimitExceeded,
    NoReply,
    NotAvailable,
)
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    StreamPosition,
    UserID,
)
from realtime.streams import reading

MAX_SURVEYED_CHANNELS = 1000
"""Channels of one survey."""


async def publish(member: Member, new: NewPublication) -> StreamPosition | None:
    """Publish into a channel.

    Returns:
        The position of the publication; None without history. If its idempotency key was used,
        that of the publication that used it.
    """
    return await member.publish_new(new, check_channel(new.channel, member.config))


async def broadcast(
    member: Member, channels: Sequence[ChannelName], data: Payload
) -> list[StreamPosition | None]:
    """Publish the same data into several channels; see `publish_many`."""
    return await publish_many(member, [NewPublication(channel, data) for channel in channels])


async def publish_many(
    member: Member, publications: Sequence[NewPublication]
) -> list[StreamPosition | None]:
    """Publish into several channels.

    Not atomic: the channels before one that is refused get their publication.

    Returns:
        For each what `publish` returns.

    Raises:
        BadRequest: there are no publications, or a name is not one of a channel.
        EngineUnavailable: none was published.
        NoReply: some may have been published.
    """
    if not publications:
        raise BadRequest
    if len(publications) == 1:
        return [await publish(member, publications[0])]
    ready: list[tuple[NewPublication, ChannelOptions]] = []
    refused: Error | None = None
    for new in publications:
        try:
            ready.append((new, check_channel(new.channel, member.config)))
        except Error as error:
            refused = error
            break
    results = await member.publish_many(ready)
    positions: list[StreamPosition | None] = []
    failures: list[EngineUnavailable] = []
    for result in results:
        if isinstance(result, EngineUnavailable):
            failures.append(result)
        else:
            positions.append(result)
    if failures:
        unknown = [failure for failure in failures if isinstance(failure, NoReply)]
        if not unknown and len(failures) < len(results):
            raise NoReply(str(failures[0])) from failures[0]
        raise (unknown or failures)[0]
    if refused is not None:
        raise refused
    return positions


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
    since: StreamPosition | None = None,
    reverse: bool = False,
    options: ChannelOptions | None = None,
) -> HistoryResult:
    """Return the history of a channel, with its top position; see `streams.reading`.

    Args:
        member: the member of the service that this process is.
        channel: the name of the channel.
        limit: the number of publications at most; None: all, 0: only the position.
        since: where to begin: publications after this position, in reverse those before it.
        reverse: the newest publication comes first.
        options: those of the channel, if the caller has looked them up already.

    Raises:
        NotAvailable: the channel has no history.
        UnrecoverablePosition: `since` is of another epoch.
        BadRequest: nothing can be before `since`.
    """
    if not (options or check_channel(channel, member.config)).keeps_history:
        raise NotAvailable
    return await reading.read(member.broker, channel, limit=limit, since=since, reverse=reverse)


async def positions(member: Member, channels: Sequence[ChannelName]) -> list[StreamPosition]:
    """Return the top position of each channel.

    Raises:
        NotAvailable: one of the channels has no history.
    """
    for channel in channels:
        if not check_channel(channel, member.config).keeps_history:
            raise NotAvailable
    return await member.positions(channels)


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
