"""The server API as plain functions, for Django code: views, signals, tasks, shells.

Each function reaches every process of the service. It has an async version, whose name begins with
"a", for coroutines. The sync functions are for threads without an event loop, such as synchronous
views; called on an event loop they raise RuntimeError.

All of them raise:
    Error: the service refuses: an instance of one of the classes in `realtime.errors`, such as
        `NamespaceNotFound`, with the code and message that the HTTP API answers with.
    NotServing: with the memory engine, in a process that serves no clients.
    EngineUnavailable: Redis is away or refused the command, which was not run.
    NoReply: a subclass of it: no reply came in time, and the command may have been run.
    TypeError: the name of a channel is not a string.

docs/protocol.md, 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

from realtime import payload
from realtime.channel_rules import name, names
from realtime.engine import base as nodes_
from realtime.hooks.site_values import to_payload, user_id
from realtime.payload import Payload
from realtime.protocol import messages
from realtime.server_api import operations, transactions
from realtime.server_api.transactions import AfterCommit, Forgiving, Publications, Publisher
from realtime.serving import refuse_on_loop, serving


class ClientInfo(TypedDict):
    """A client, as others see it: user ID, client ID, and the infos where they exist."""

    user: str
    client: str
    conn_info: NotRequired[Any]
    chan_info: NotRequired[Any]


class Publication(TypedDict):
    """A publication in history. `info` is there only if a client published it."""

    data: Any
    uid: str
    offset: int
    info: NotRequired[ClientInfo]


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


def publish(
    channel: str, data: object, *, on_commit: bool = True, fail_silently: bool = False
) -> None:
    """Publish JSON-serialisable data into a channel.

    Inside `transaction.atomic()`, of any database, the publication goes out after the commit, and
    not at all when the transaction is rolled back. Channel and data are checked at the call; a
    failure after the commit is logged and undoes nothing.

    Args:
        channel: the name of the channel.
        data: anything that has a JSON form, or that the encoder of `json_encoder` gives one.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.

    Raises:
        TypeError: the data have no JSON form, or the channel is not a string.
    """
    _send(_encoded([(channel, data)]), on_commit, fail_silently, "apublish")


async def apublish(channel: str, data: object, *, fail_silently: bool = False) -> None:
    """Publish JSON-serialisable data into a channel. Async version of `publish`.

    It publishes at once: Django's transactions belong to threads.
    """
    await _asend(_encoded([(channel, data)]), fail_silently)


def publish_many(
    publications: Iterable[tuple[str, object]],
    *,
    on_commit: bool = True,
    fail_silently: bool = False,
) -> None:
    """Publish several (channel, data) pairs, with as few round trips as possible.

    Publications into one channel go out in their order. If one of them is refused, none is
    published. If Redis fails on the way, some may be published. For transactions see `publish`.

    Args:
        publications: channel and data of each.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.

    Raises:
        TypeError: some data have no JSON form, or a channel is not a string.
    """
    _send(_encoded(publications), on_commit, fail_silently, "apublish_many")


async def apublish_many(
    publications: Iterable[tuple[str, object]], *, fail_silently: bool = False
) -> None:
    """Publish several (channel, data) pairs. Async version of `publish_many`, always at once."""
    await _asend(_encoded(publications), fail_silently)


def broadcast(
    channels: Iterable[str],
    data: object,
    *,
    on_commit: bool = True,
    fail_silently: bool = False,
) -> None:
    """Publish the same data into several channels; see `publish` and `publish_many`.

    Args:
        channels: the names of the channels. One that is named twice gets the data twice.
        data: anything that has a JSON form.
        on_commit: False publishes at once, also inside a transaction.
        fail_silently: drop what cannot be published because this process reaches no clients, or
            because Redis is away, instead of raising NotServing or EngineUnavailable.

    Raises:
        TypeError: the data have no JSON form, or `channels` is one name and not a list of names.
    """
    _send(_to_each(channels, data), on_commit, fail_silently, "abroadcast")


async def abroadcast(channels: Iterable[str], data: object, *, fail_silently: bool = False) -> None:
    """Publish the same data into several channels. Async version of `broadcast`, always at once."""
    await _asend(_to_each(channels, data), fail_silently)


def _to_each(channels: Iterable[str], data: object) -> list[tuple[str, Payload]]:
    encoded = to_payload(data)
    return [(channel, encoded) for channel in names(channels)]


def _encoded(publications: Iterable[tuple[str, object]]) -> list[tuple[str, Payload]]:
    return [(name(channel), to_payload(data)) for channel, data in publications]


def _send(
    publications: Publications, on_commit: bool, fail_silently: bool, async_name: str
) -> None:
    transactions.check(publications, serving.config())
    refuse_on_loop(async_name)
    if not fail_silently:
        publisher = serving.after_commit if on_commit else serving.publisher
    else:
        publisher = AfterCommit(_forgiving) if on_commit else _forgiving()
    publisher.send(publications)


async def _asend(publications: Publications, fail_silently: bool) -> None:
    transactions.check(publications, serving.config())
    publisher = _forgiving() if fail_silently else serving.publisher
    await publisher.asend(publications)


def _forgiving() -> Publisher:
    return Forgiving(lambda: serving.publisher)


def unsubscribe(user: Any, channel: str = "") -> None:
    """Unsubscribe all connections of a user from a channel.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.
        channel: the name of the channel; "" means all channels of each connection.

    Raises:
        TypeError: `user` is neither a user nor an ID, or `channel` is not a string.
    """
    user, channel = user_id(user), name(channel)
    serving.call(
        lambda member: operations.unsubscribe(member, user, channel), async_name="aunsubscribe"
    )


async def aunsubscribe(user: Any, channel: str = "") -> None:
    """Unsubscribe all connections of a user from a channel. Async version of `unsubscribe`."""
    user, channel = user_id(user), name(channel)
    await serving.acall(lambda member: operations.unsubscribe(member, user, channel))


def disconnect(user: Any) -> None:
    """Disconnect all connections of a user; their clients do not reconnect.

    Args:
        user: a Django user, or a user ID as a string, an integer or a UUID.

    Raises:
        TypeError: it is neither a user nor an ID.
    """
    user = user_id(user)
    serving.call(lambda member: operations.disconnect(member, user), async_name="adisconnect")


async def adisconnect(user: Any) -> None:
    """Disconnect all connections of a user. Async version of `disconnect`."""
    user = user_id(user)
    await serving.acall(lambda member: operations.disconnect(member, user))


def presence(channel: str) -> dict[str, ClientInfo]:
    """Return the clients that are subscribed to a channel.

    Returns:
        Client ID → client info.
    """
    channel = name(channel)
    return _presence(
        serving.call(lambda member: operations.presence(member, channel), async_name="apresence")
    )


async def apresence(channel: str) -> dict[str, ClientInfo]:
    """Return the clients that are subscribed to a channel. Async version of `presence`."""
    channel = name(channel)
    return _presence(await serving.acall(lambda member: operations.presence(member, channel)))


def presence_stats(channel: str) -> PresenceStats:
    """Return the numbers of clients and users that are subscribed to a channel."""
    channel = name(channel)
    return _presence_stats(
        serving.call(
            lambda member: operations.presence_stats(member, channel), async_name="apresence_stats"
        )
    )


async def apresence_stats(channel: str) -> PresenceStats:
    """Return the numbers of clients and users that are subscribed to a channel.

    Async version of `presence_stats`.
    """
    channel = name(channel)
    return _presence_stats(
        await serving.acall(lambda member: operations.presence_stats(member, channel))
    )


def history(channel: str) -> list[Publication]:
    """Return the history of a channel, oldest publication first."""
    channel = name(channel)
    return _history(
        serving.call(lambda member: operations.history(member, channel), async_name="ahistory")
    )


async def ahistory(channel: str) -> list[Publication]:
    """Return the history of a channel, oldest publication first. Async version of `history`."""
    channel = name(channel)
    return _history(await serving.acall(lambda member: operations.history(member, channel)))


def history_remove(channel: str) -> None:
    """Remove the history of a channel; offsets continue from where they were."""
    channel = name(channel)
    serving.call(
        lambda member: operations.history_remove(member, channel), async_name="ahistory_remove"
    )


async def ahistory_remove(channel: str) -> None:
    """Remove the history of a channel. Async version of `history_remove`."""
    channel = name(channel)
    await serving.acall(lambda member: operations.history_remove(member, channel))


def channels() -> list[str]:
    """Return the channels that have a subscriber, sorted. Slow for more than 10 000 channels."""
    return serving.call(operations.channels, async_name="achannels")


async def achannels() -> list[str]:
    """Return the channels that have a subscriber, sorted. Async version of `channels`."""
    return await serving.acall(operations.channels)


def info() -> list[NodeInfo]:
    """Return the nodes of the service."""
    return _info(serving.call(operations.info, async_name="ainfo"))


async def ainfo() -> list[NodeInfo]:
    """Return the nodes of the service. Async version of `info`."""
    return _info(await serving.acall(operations.info))


# results as Python objects


def _presence(result: messages.PresenceResult) -> dict[str, ClientInfo]:
    return {client: _client_info(info) for client, info in result.presence.items()}


def _client_info(info: messages.ClientInfo) -> ClientInfo:
    entry = ClientInfo(user=info.user, client=info.client)
    if info.conn_info is not None:
        entry["conn_info"] = payload.value(info.conn_info.json)
    if info.chan_info is not None:
        entry["chan_info"] = payload.value(info.chan_info.json)
    return entry


def _presence_stats(result: messages.PresenceStatsResult) -> PresenceStats:
    return PresenceStats(num_clients=result.num_clients, num_users=result.num_users)


def _history(result: messages.HistoryResult) -> list[Publication]:
    entries = []
    for publication in result.publications:
        entry = Publication(
            data=payload.value(publication.data.json),
            uid=publication.uid,
            offset=publication.offset,
        )
        if publication.info is not None:
            entry["info"] = _client_info(publication.info)
        entries.append(entry)
    return entries


def _info(nodes: list[nodes_.NodeInfo]) -> list[NodeInfo]:
    return [
        NodeInfo(
            uid=node.uid,
            name=node.name,
            version=node.version,
            num_clients=node.num_clients,
            num_users=node.num_users,
            num_channels=node.num_channels,
            uptime=node.uptime,
        )
        for node in nodes
    ]
