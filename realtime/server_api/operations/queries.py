"""Operations that ask and change nothing: about channels, nodes and connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from realtime.channel_rules import check_channel
from realtime.cluster.member import Member
from realtime.cluster.survey import (
    AskConnections,
    AskSubscribers,
    ConnectionsAnswer,
    SubscribersAnswer,
    SurveyResult,
)
from realtime.config.options import ChannelOptions
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.errors import BadRequest, LimitExceeded, NotAvailable
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


class ListedChannels(NamedTuple):
    """Channels, and what is not known of them."""

    names: list[ChannelName]
    """Sorted."""
    missing: list[str]
    """Names of the nodes that are silent; channels of theirs alone are not in the list."""


class CountedSubscribers(NamedTuple):
    """Numbers of subscribers, and what is not in them."""

    numbers: dict[ChannelName, int]
    missing: list[str]
    """Names of the nodes that did not answer; their subscribers are not counted."""


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


async def channels(member: Member) -> ListedChannels:
    """Return the channels that have a subscriber."""
    return ListedChannels(sorted(await member.channels()), await member.silent())


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
    return await member.survey(AskConnections(user), ConnectionsAnswer)


async def subscribers(
    member: Member, channels: Sequence[ChannelName]
) -> SurveyResult[SubscribersAnswer]:
    """Return the numbers of subscribers of channels at every node.

    Raises:
        LimitExceeded: there are more than `MAX_SURVEYED_CHANNELS` channels.
    """
    if len(channels) > MAX_SURVEYED_CHANNELS:
        raise LimitExceeded
    return await member.survey(AskSubscribers(tuple(channels)), SubscribersAnswer)


async def numbers_of_subscribers(
    member: Member, channels: Sequence[ChannelName]
) -> CountedSubscribers:
    """Return channel → number of subscribers at every node that answers, for any number."""
    numbers = dict.fromkeys(channels, 0)
    missing: set[str] = set()
    for start in range(0, len(channels), MAX_SURVEYED_CHANNELS):
        part = channels[start : start + MAX_SURVEYED_CHANNELS]
        surveyed = await subscribers(member, part)
        missing.update(surveyed.missing)
        for answer in surveyed.answers:
            for channel, number in zip(part, answer.numbers, strict=False):
                numbers[channel] += number
    return CountedSubscribers(numbers, sorted(missing))


async def round_trip(member: Member) -> float | None:
    """Measure a round trip to Redis, in seconds; None with the memory engine."""
    return None if member.cluster is None else await member.cluster.round_trip()
