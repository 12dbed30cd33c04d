"""Rules of the server API: one coroutine for each method, on a member of the service.

They check; the member sends, and says what the arguments mean. Data are payloads, and results are
messages. `methods` speaks bytes above this, and `queries` Python objects: both keep the same
rules. What acts on users returns the names of the nodes that are silent: they do it when they are
back.

All of them raise:
    BadRequest: a name of a channel or user is missing, or is not one.
    NamespaceNotFound: the channel is in no namespace of the configuration.
    EngineUnavailable: The engine refused the command, or did not answer in time.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from realtime.channel_rules import check_channel, check_data
from realtime.cluster.control import RefreshSome, SubscribeSome
from realtime.cluster.member import NOTHING, Member, NewPublication
from realtime.cluster.survey import (
    AskConnections,
    AskSubscribers,
    ConnectionsAnswer,
    SubscribersAnswer,
    SurveyResult,
)
from realtime.config.options import ChannelOptions, Config
from realtime.engine.base import Published
from realtime.engine.maps import Maps, Page, check_key
from realtime.engine.nodes import NodeInfo, NodeStatus
from realtime.errors import (
    BadRequest,
    Disconnect,
    EngineUnavailable,
    Error,
    InternalError,
    LimitExceeded,
    NoReply,
    NotAvailable,
)
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

MAX_SURVEYED_CHANNELS = 1000
"""Channels of one survey."""
MAX_PAGE = 1000
"""Entries of a map in one answer."""
MAX_WHITELIST = 1000
"""Clients that a disconnect may leave."""
MAX_BLOCK_SECONDS = 10 * 365 * 24 * 3600
MAX_BLOCKED_USER = 255
"""Characters of the ID of a user who can be blocked: every node remembers it."""

Checked = tuple[NewPublication, ChannelOptions]
"""A publication that `check_new` has let through, and the options of its channel."""


class EngineAway(Error, code=300, message="engine unavailable"):
    """The reply of the HTTP API for an `EngineUnavailable`: the command was not run.

    The protocol has no such code.
    """


class OutcomeUnknown(Error, code=301, message="outcome unknown"):
    """The reply of the HTTP API for a `NoReply`: the command may have been run."""


def api_error(error: Error | EngineUnavailable) -> Error:
    """Return the error with which the HTTP API answers."""
    if isinstance(error, Error):
        return error
    return OutcomeUnknown() if isinstance(error, NoReply) else EngineAway()


# publishing


def check_new(new: NewPublication, config: Config) -> ChannelOptions:
    """Return the options of the channel that a publication is for.

    Raises:
        NotAvailable: as `check_kept`.
        NotAnObject: `publication_data_format` wants a JSON object.
        BadRequest: the data do not have the type that is declared for the channel.
    """
    options = check_kept(new, config)
    if new.removed:
        return options
    check_data(options, new.data)
    if config.types is not None:
        config.types.check_sent(new.channel, new.data)
    return options


def check_kept(new: NewPublication, config: Config) -> ChannelOptions:
    """Return the options of the channel that a kept publication is for.

    Its data were checked before it was kept. What they must be may have changed since, and it is
    committed.

    Raises:
        NotAvailable: the publication has a version or expects a position, and is not kept in a
            history; or it has a key, and the channel is no map; or the other way round.
        BadRequest: its key is not one.
    """
    options = check_channel(new.channel, config)
    needs_history = new.expect is not None or (new.version is not None and not options.map)
    if new.key or options.map:
        if not (new.key and options.map) or new.skip_history:
            raise NotAvailable
        check_key(new.key)
    if needs_history and (new.skip_history or not options.keeps_history):
        raise NotAvailable
    return options


async def publish(member: Member, new: NewPublication) -> Published:
    """Publish into a channel; raises what `check_new` raises."""
    return await member.publish_new(new, check_new(new, member.config))


async def publish_many(member: Member, publications: Sequence[NewPublication]) -> None:
    """Publish into several channels. Those before one that is refused get their publication.

    Raises:
        NoReply: some failed, or may have failed. Others were published.
        Exception: as `check_new`.
    """
    checked: list[Checked] = []
    try:
        for new in publications:
            checked.append((new, check_new(new, member.config)))
    finally:
        if checked:
            await publish_checked(member, checked)


async def publish_checked(member: Member, publications: Sequence[Checked]) -> list[Published]:
    """Publish into several channels what `check_new` has let through; see `publish_many`."""
    if len(publications) == 1:
        return [await member.publish_new(*publications[0])]
    results = await member.publish_many(publications)
    published = [result for result in results if isinstance(result, Published)]
    failures = [result for result in results if isinstance(result, EngineUnavailable)]
    if failures:
        unknown = [failure for failure in failures if isinstance(failure, NoReply)]
        if published and not unknown:
            raise NoReply(str(failures[0])) from failures[0]
        raise (unknown or failures)[0]
    return published


async def history_remove(member: Member, channel: ChannelName) -> None:
    """Remove the history of a channel; offsets continue from where they were.

    Raises:
        NotAvailable: the channel has no history.
    """
    _check_history(member, channel)
    await member.broker.remove_history(channel)


# maps


async def map_page(
    member: Member, channel: ChannelName, cursor: str = "", limit: int = MAX_PAGE
) -> Page:
    """Return the entries of a map after a cursor, `MAX_PAGE` at most; see `Maps.page`.

    Raises:
        NotAvailable: the channel is no map.
    """
    page = await _map(member, channel).page(channel, cursor, min(limit, MAX_PAGE))
    return _placed(page, channel, member)


async def map_get(member: Member, channel: ChannelName, key: str) -> Page:
    """Return the entry of a key; see `Maps.get`.

    Raises:
        NotAvailable: the channel is no map.
    """
    maps = _map(member, channel)
    check_key(key)
    return _placed(await maps.get(channel, key), channel, member)


def _placed(page: Page, channel: ChannelName, member: Member) -> Page:
    """Return a page; without a position where the map has no stream."""
    keeps = check_channel(channel, member.config).keeps_history
    return page if keeps else page._replace(position=StreamPosition(0, ""))


async def map_clear(member: Member, channel: ChannelName) -> None:
    """Remove the entries that a map has now, each by a change.

    Raises:
        NotAvailable: the channel is no map.
        NoReply: some were removed, and others may not be.
    """
    cursor: str | None = ""
    while cursor is not None:
        page = await map_page(member, channel, cursor)
        cursor = page.cursor or None  # there may be more behind entries that are left out
        if keys := [entry.key for entry in page.entries]:
            await publish_many(
                member, [NewPublication(channel, NOTHING, key=key, removed=True) for key in keys]
            )


def _map(member: Member, channel: ChannelName) -> Maps:
    if not check_channel(channel, member.config).map or member.maps is None:
        raise NotAvailable
    return member.maps


# the connections of users


async def subscribe(member: Member, message: SubscribeSome) -> None:
    """Subscribe connections of a user to a channel.

    Raises:
        InternalError: the subscription would have expired already.
    """
    check_channel(message.channel, member.config)
    if message.expires_at is not None and message.expires_at <= time.time():
        raise InternalError
    await member.send_control(message)


async def refresh(member: Member, message: RefreshSome) -> None:
    """Set when connections of a user expire, and what others see of them."""
    await member.send_control(message)


async def unsubscribe(
    member: Member,
    user: UserID,
    channel: ChannelName,
    *,
    client: ClientID = "",
    session: str = "",
    anonymous: bool = False,
) -> list[str]:
    """Unsubscribe a user's connections from a channel; "" means from all their channels.

    Args:
        anonymous: whether the user "" stands for anonymous clients; otherwise it is refused."""
    if not user and not anonymous:
        raise BadRequest
    if channel:
        check_channel(channel, member.config)
    await member.unsubscribe_user(user, channel, client=client, session=session)
    return await _silent(member)


async def _silent(member: Member) -> list[str]:
    """Return the nodes that are silent, as far as is known: what was sent stays sent."""
    try:
        return await member.silent()
    except EngineUnavailable:
        return []


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
) -> list[str]:
    """Disconnect a user's connections; by default their clients do not reconnect.

    Args:
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
    return await _silent(member)


def _disconnect(code: int, reason: str) -> Disconnect:
    if not 3000 <= code <= 4999:
        raise BadRequest
    try:
        return Disconnect.received(code, reason, reconnect=code % 1000 < 500)
    except ValueError:
        raise BadRequest from None


async def block(member: Member, user: UserID, until: float) -> list[str]:
    """Close a user's connections, and refuse new ones until then, Unix seconds.
    Raises:
        BadRequest: there is no user, its ID is too long, or `until` is past or too far away.
        LimitExceeded: too many users are blocked.
    """
    if not user or len(user) > MAX_BLOCKED_USER:
        raise BadRequest
    if not 0 < until - time.time() <= MAX_BLOCK_SECONDS + 1:  # callers round up
        raise BadRequest
    await member.block_user(user, until)
    return await _silent(member)


async def unblock(member: Member, user: UserID) -> list[str]:
    """Let a user connect again."""
    if not user:
        raise BadRequest
    await member.unblock_user(user)
    return await _silent(member)


async def blocked(member: Member) -> dict[UserID, float]:
    """Return the users who are blocked, and when that ends, Unix seconds; the first end first."""
    ends = await member.blocked()
    return dict(sorted(ends.items(), key=lambda item: (item[1], item[0])))


# questions, which change nothing


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
    joins: bool = True,
) -> HistoryResult:
    """Return the history of a channel, with its top position; see `streams.reading`.

    Args:
        options: those of the channel, if the caller has looked them up already.
        joins: join publications where the channel has `join_on_read`.

    Raises:
        NotAvailable: the channel has no history.
        UnrecoverablePosition: `since` is of another epoch.
        BadRequest: nothing can be before `since`.
    """
    options = _check_history(member, channel, options)
    joins = joins and options.join_on_read
    return await reading.read(
        member.broker, channel, limit=limit, since=since, reverse=reverse, joins=joins
    )


async def positions(member: Member, channels: Sequence[ChannelName]) -> list[StreamPosition]:
    """Return the top position of each channel.

    Raises:
        NotAvailable: one of the channels has no history.
    """
    for channel in channels:
        _check_history(member, channel)
    return await member.broker.positions(channels)


def _check_history(
    member: Member, channel: ChannelName, options: ChannelOptions | None = None
) -> ChannelOptions:
    options = options or check_channel(channel, member.config)
    if not options.keeps_history:
        raise NotAvailable
    return options


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
    """Return a user's connections at every node. Anonymous clients have no user ID."""
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
    """Measure a round trip to the engine, in seconds; None with the memory engine."""
    return None if member.cluster is None else await member.cluster.round_trip()
