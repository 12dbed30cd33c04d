"""Presence, history, positions and channels as plain functions, for views, signals and tasks.

Each function reaches every process of the service. It has an async version, whose name begins with
"a", for coroutines. The sync functions are for threads without an event loop, such as synchronous
views; called on an event loop they raise RuntimeError.

All of them raise:
    Error: the service refuses: an instance of one of the classes in `realtime.errors`, such as
        `NamespaceNotFound`, with the code and message that the HTTP API answers with.
    NotServing: with the memory engine, in a process that serves no clients.
    EngineUnavailable: The engine is away or refused the command, which was not run.
    NoReply: a subclass of it: no reply came in time, and the command may have been run.
    TypeError: the name of a channel is not a string.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, NotRequired, TypedDict, Unpack, cast

import msgspec

from realtime import payload
from realtime.channel_rules import name
from realtime.cluster.member import Member
from realtime.engine import nodes as nodes_
from realtime.protocol import messages
from realtime.server_api import operations
from realtime.server_api.arguments import Position, distinct, stream_position, whole
from realtime.server_api.online import online_users
from realtime.serving import serving


class ClientInfo(TypedDict):
    """A client, as others see it: user ID, client ID, and the infos where they exist."""

    user: str
    client: str
    conn_info: NotRequired[Any]
    chan_info: NotRequired[Any]


class Publication(TypedDict):
    """A publication in history. `info` is there only if a client published it.

    `tags` are there only if it has any. `time`: when history kept it, by the clock of the engine:
    Unix time in milliseconds; missing if a version published it that did not record it. `key` and
    `removed`: of a change of a map.
    """

    data: Any
    uid: str
    offset: int
    info: NotRequired[ClientInfo]
    tags: NotRequired[dict[str, str]]
    time: NotRequired[int]
    key: NotRequired[str]
    removed: NotRequired[bool]


class PresenceStats(TypedDict):
    """The number of clients, and of distinct users among them."""

    num_clients: int
    num_users: int


class NodeInfo(TypedDict):
    """One node. `uptime` is in seconds."""

    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_channels: int
    uptime: int


class Presence(dict[str, ClientInfo]):
    """The clients that are subscribed to a channel: client ID → client info."""

    @property
    def clients(self) -> dict[str, ClientInfo]:
        """The same, as a plain dictionary."""
        return dict(self)

    def users(self) -> Any:
        """Return the users of the site among them, as a QuerySet.

        Raises:
            ImproperlyConfigured: the app `realtime.online` is not installed.
        """
        return online_users(serving.online).with_ids({info["user"] for info in self.values()})


def presence(channel: str) -> Presence:
    """Return the clients that are subscribed to a channel.

    Returns:
        Client ID → client info. It has a method `users`, with the app `realtime.online`.
    """
    work = partial(operations.presence, channel=name(channel))
    return _presence(serving.call(work, async_name="apresence"))


async def apresence(channel: str) -> Presence:
    """Return the clients that are subscribed to a channel. Async version of `presence`."""
    work = partial(operations.presence, channel=name(channel))
    return _presence(await serving.acall(work))


def presence_stats(channel: str) -> PresenceStats:
    """Return the numbers of clients and users that are subscribed to a channel."""
    work = partial(operations.presence_stats, channel=name(channel))
    return _presence_stats(serving.call(work, async_name="apresence_stats"))


async def apresence_stats(channel: str) -> PresenceStats:
    """Return the numbers of clients and users that are subscribed to a channel.

    Async version of `presence_stats`.
    """
    work = partial(operations.presence_stats, channel=name(channel))
    return _presence_stats(await serving.acall(work))


class HistoryOptions(TypedDict, total=False):
    """Options of `history`."""

    limit: int | None
    """The number of publications at most; None: all that are kept."""
    since: Position | int | None
    """A position, or an offset in whatever epoch: return publications after it, in reverse those
    before it."""
    reverse: bool
    """Newest publication first."""


def history(channel: str, **options: Unpack[HistoryOptions]) -> list[Publication]:
    """Return the history of a channel, oldest publication first.

    Args:
        channel: the name of the channel.
        options: `limit`, `since` and `reverse`, which `HistoryOptions` explains.

    Raises:
        UnrecoverablePosition: code 112, `since` is of another epoch.
        BadRequest: code 107, nothing can be before `since`.
        TypeError: an argument has the wrong type.
        ValueError: `limit` or the offset is less than 0.
    """
    return _history(serving.call(reading(channel, **options), async_name="ahistory"))


async def ahistory(channel: str, **options: Unpack[HistoryOptions]) -> list[Publication]:
    """Return the history of a channel, oldest publication first. Async version of `history`."""
    return _history(await serving.acall(reading(channel, **options)))


def reading(
    channel: str,
    limit: int | None = None,
    since: Position | int | None = None,
    reverse: bool = False,
) -> Callable[[Member], Awaitable[messages.HistoryResult]]:
    """Return what reads the history of a channel; arguments and errors are those of `history`."""
    if limit is not None and whole("limit", limit) < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    return partial(
        operations.history,
        channel=name(channel),
        limit=limit,
        since=stream_position(since),
        reverse=reverse,
    )


def position(channel: str) -> Position:
    """Return the position of the last publication in a channel; its offset is 0 before the first.

    Raises:
        NotAvailable: code 108, the channel has no history.
    """
    return positions([channel])[channel]


async def aposition(channel: str) -> Position:
    """Return the position of the last publication in a channel. Async version of `position`."""
    return (await apositions([channel]))[channel]


def positions(channels: Iterable[str]) -> dict[str, Position]:
    """Return the position of each channel, as `position`, in as few round trips as possible."""
    wanted = distinct(channels)
    work = partial(operations.positions, channels=wanted)
    return _positions(wanted, serving.call(work, async_name="apositions"))


async def apositions(channels: Iterable[str]) -> dict[str, Position]:
    """Return the position of each channel. Async version of `positions`."""
    wanted = distinct(channels)
    return _positions(wanted, await serving.acall(partial(operations.positions, channels=wanted)))


def _positions(channels: list[str], found: list[messages.StreamPosition]) -> dict[str, Position]:
    return {
        channel: Position(top.offset, top.epoch)
        for channel, top in zip(channels, found, strict=True)
    }


def history_remove(channel: str) -> None:
    """Remove the history of a channel; offsets continue from where they were."""
    work = partial(operations.history_remove, channel=name(channel))
    serving.call(work, async_name="ahistory_remove")


async def ahistory_remove(channel: str) -> None:
    """Remove the history of a channel. Async version of `history_remove`."""
    await serving.acall(partial(operations.history_remove, channel=name(channel)))


class Channels(list[str]):
    """Channels that have a subscriber, sorted."""

    missing: list[str]
    """Names of the nodes that are silent; channels of theirs alone are not in the list."""


def channels() -> Channels:
    """Return the channels that have a subscriber, sorted. Slow for more than 10 000 channels."""
    return _channels(serving.call(operations.channels, async_name="achannels"))


async def achannels() -> Channels:
    """Return the channels that have a subscriber, sorted. Async version of `channels`."""
    return _channels(await serving.acall(operations.channels))


def info() -> list[NodeInfo]:
    """Return the nodes of the service."""
    return _info(serving.call(operations.info, async_name="ainfo"))


async def ainfo() -> list[NodeInfo]:
    """Return the nodes of the service. Async version of `info`."""
    return _info(await serving.acall(operations.info))


# results as Python objects


def _presence(result: messages.PresenceResult) -> Presence:
    return Presence({client: client_info_of(info) for client, info in result.presence.items()})


def client_info_of(info: messages.ClientInfo) -> ClientInfo:
    """Return a client info as Python objects."""
    entry = ClientInfo(user=info.user, client=info.client)
    if info.conn_info is not None:
        entry["conn_info"] = payload.value(info.conn_info.json)
    if info.chan_info is not None:
        entry["chan_info"] = payload.value(info.chan_info.json)
    return entry


def _presence_stats(result: messages.PresenceStatsResult) -> PresenceStats:
    return cast(PresenceStats, msgspec.structs.asdict(result))


def _history(result: messages.HistoryResult) -> list[Publication]:
    entries = []
    for publication in result.publications:
        entry = Publication(
            data=payload.value(publication.data.json),
            uid=publication.uid,
            offset=publication.offset,
        )
        if publication.info is not None:
            entry["info"] = client_info_of(publication.info)
        if publication.tags:
            entry["tags"] = dict(publication.tags)
        if publication.time:
            entry["time"] = publication.time
        if publication.key:
            entry["key"] = publication.key
        if publication.removed:
            entry["removed"] = True
        entries.append(entry)
    return entries


def _channels(listed: operations.ListedChannels) -> Channels:
    result = Channels(listed.names)
    result.missing = listed.missing
    return result


def _info(nodes: list[nodes_.NodeInfo]) -> list[NodeInfo]:
    return [cast(NodeInfo, msgspec.structs.asdict(node)) for node in nodes]
