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

import time
from collections.abc import Mapping, Sequence

from realtime.channel_rules import check_channel
from realtime.cluster.control import SubscribeSome
from realtime.cluster.member import Member, NewPublication
from realtime.cluster.survey import ConnectionsAnswer, SubscribersAnswer, SurveyResult
from realtime.config.options import ChannelOptions
from realtime.engine.base import NodeInfo, NodeStatus
from realtime.errors import (
    BadRequest,
    Disconnect,
    EngineAway,
    EngineUnavailable,
    Error,
    InternalError,
    LimitExceeded,
    NoReply,
    NotAvailable,
    OutcomeUnknown,
)
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    StreamPosition,
    UserID,
)
from realtime.streams import reading

MAX_WHITELIST = 1000
"""Clients that a disconnect may leave."""

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


async def subscribe(
    member: Member,
    user: UserID,
    channel: ChannelName,
    *,
    client: ClientID = "",
    session: str = "",
    info: Payload | None = None,
    data: Payload | None = None,
    expires_at: float | None = None,
    since: StreamPosition | None = None,
    overrides: Mapping[str, bool] | None = None,
) -> None:
    """Subscribe a user's connections to a channel.

    Args:
        member: the member of the service that this process is.
        user: the user ID; "" for anonymous clients.
        channel: the name of the channel.
        client, session: as in `unsubscribe`.
        info: the channel info.
        data: for the clients.
        expires_at: when the subscription expires, Unix seconds; None for never.
        since: where the clients continue, in channels with forced recovery.
        overrides: the names of options in `Overrides`, and what they are for these subscriptions.

    Raises:
        InternalError: `expires_at` has passed.
    """
    check_channel(channel, member.config)
    if expires_at is not None and expires_at <= time.time():
        raise InternalError
    await member.subscribe_some(
        SubscribeSome(
            user=user,
            client=client,
            session=session,
            channel=channel,
            info=_text(info),
            data=_text(data),
            expires_at=expires_at,
            since=since,
            overrides=dict(overrides) if overrides else None,
        )
    )


def _text(value: Payload | None) -> str | None:
    return None if value is None else value.raw.decode()


async def unsubscribe(
    member: Member,
    user: UserID,
    channel: ChannelName,
    *,
    client: ClientID = "",
    session: str = "",
    anonymous: bool = False,
) -> None:
    """Unsubscribe a user's connections from a channel; "" means from all their channels.

    Args:
        member: the member of the service that this process is.
        user: the user ID.
        channel: the name of the channel.
        client: only this connection; "" for every one.
        session: only the connection with this session; "" for every one.
        anonymous: whether the user "" stands for anonymous clients; otherwise it is refused.
    """
    if not user and not anonymous:
        raise BadRequest
    if channel:
        check_channel(channel, member.config)
    await member.unsubscribe_user(user, channel, client=client, session=session)


async def disconnect(
    member: Member,
    user: UserID,
    *,
    client: ClientID = "",
    session: str = "",
    whitelist: Sequence[ClientID] = (),
    code: int | None = None,
    reason: str = "",
    anonymous: bool = False,
) -> None:
    """Disconnect a user's connections; by default their clients do not reconnect.

    Args:
        member: the member of the service that this process is.
        user: the user ID.
        client: as in `unsubscribe`.
        session: as in `unsubscribe`.
        whitelist: the connections that stay.
        code: 3000 to 4999, which tells clients whether to reconnect: from 3500 to 3999 and from
            4500 on they do not. None: "force disconnect".
        reason: at most 123 bytes in a close frame.
        anonymous: as in `unsubscribe`.

    Raises:
        BadRequest: the code or the reason is not one, or `whitelist` is too long.
    """
    if (not user and not anonymous) or len(whitelist) > MAX_WHITELIST:
        raise BadRequest
    disconnect = None if code is None else _disconnect(code, reason)
    await member.disconnect_user(user, disconnect, client=client, session=session, keep=whitelist)


def _disconnect(code: int, reason: str) -> Disconnect:
    if not 3000 <= code <= 4999:
        raise BadRequest
    try:
        return Disconnect.received(code, reason, reconnect=code % 1000 < 500)
    except ValueError:
        raise BadRequest from None


async def refresh(
    member: Member,
    user: UserID,
    *,
    client: ClientID = "",
    session: str = "",
    expires_at: float | None = None,
    info: Payload | None = None,
) -> None:
    """Set when a user's connections expire.

    Args:
        member: the member of the service that this process is.
        user: the user ID; "" for anonymous clients.
        client: as in `unsubscribe`.
        session: as in `unsubscribe`.
        expires_at: Unix seconds; a past time closes the connections, None ends their expiry.
        info: their connection info; None: it stays as it is.
    """
    await member.refresh_user(user, expires_at, info, client=client, session=session)


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


async def numbers_of_subscribers(
    member: Member, channels: Sequence[ChannelName]
) -> dict[ChannelName, int]:
    """Return channel → number of subscribers at every node that answers, for any number."""
    numbers = dict.fromkeys(channels, 0)
    for start in range(0, len(channels), MAX_SURVEYED_CHANNELS):
        part = channels[start : start + MAX_SURVEYED_CHANNELS]
        for answer in (await member.subscribers(part)).answers:
            for channel, number in zip(part, answer.numbers, strict=False):
                numbers[channel] += number
    return numbers


def api_error(error: Error | EngineUnavailable) -> Error:
    """Return the error with which the HTTP API answers."""
    if isinstance(error, Error):
        return error
    return OutcomeUnknown() if isinstance(error, NoReply) else EngineAway()


async def round_trip(member: Member) -> float | None:
    """Measure a round trip to Redis, in seconds; None with the memory engine."""
    return None if member.cluster is None else await member.cluster.round_trip()
