"""The server API as plain functions, for Django code: views, signals, tasks, shells.

Each function reaches every process of the service and has a twin whose name begins with
"a", for coroutines. The plain ones are for threads without an event loop (synchronous
views, for example); called on an event loop they raise RuntimeError.

All of them raise:
    Error: what the server API would answer with (its code and message are attributes),
        for example `NamespaceNotFound`.
    NotServing: with the memory engine, in a process that serves no clients.
    EngineUnavailable: Redis did not do it, or did not answer in time.

Spec: Server HTTP API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

from realtime import payload
from realtime.engine import base as nodes_
from realtime.payload import Payload
from realtime.protocol import messages
from realtime.server_api import operations, transactions
from realtime.serving import acall, call


class ClientInfo(TypedDict):
    """Who: user ID, connection ID, and the infos where they exist."""

    user: str
    client: str
    conn_info: NotRequired[Any]
    chan_info: NotRequired[Any]


class Publication(TypedDict):
    """A publication that is kept. `info` only when a client published it."""

    data: Any
    uid: str
    offset: int
    info: NotRequired[ClientInfo]


class PresenceStats(TypedDict):
    """Clients, and distinct users among them."""

    num_clients: int
    num_users: int


class NodeInfo(TypedDict):
    """One process of the service. `uptime` in seconds."""

    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_channels: int
    uptime: int


def publish(channel: str, data: object, *, on_commit: bool = True) -> None:
    """Publish JSON-serialisable data into a channel.

    Inside `transaction.atomic()`, of whichever database, it goes out after the commit, and
    not at all when the transaction is rolled back; `on_commit=False` publishes at once all
    the same. Channel and data are checked here and now; what fails after the commit is
    logged, and does not undo anything.

    Raises:
        TypeError: the data have no JSON form.
    """
    sending = transactions.Sending(_encoded([(channel, data)]), "apublish")
    transactions.send(sending, on_commit=on_commit)


async def apublish(channel: str, data: object) -> None:
    """Twin of `publish`, always at once: Django's transactions belong to threads."""
    await transactions.Sending([(channel, payload.from_object(data))], "apublish").asend()


def publish_many(publications: Iterable[tuple[str, object]], *, on_commit: bool = True) -> None:
    """Publish several (channel, data) pairs, with as few round trips as possible; see `publish`.

    Those into one channel go out in their order. When one of them is refused, none is
    published; when Redis fails on the way, some may be.
    """
    sending = transactions.Sending(_encoded(publications))
    transactions.send(sending, on_commit=on_commit)


async def apublish_many(publications: Iterable[tuple[str, object]]) -> None:
    """Twin of `publish_many`, always at once."""
    await transactions.Sending(_encoded(publications)).asend()


def _encoded(publications: Iterable[tuple[str, object]]) -> list[tuple[str, Payload]]:
    return [(channel, payload.from_object(data)) for channel, data in publications]


def broadcast(channels: Iterable[str], data: object, *, on_commit: bool = True) -> None:
    """Publish the same data into several channels; see `publish` and `publish_many`."""
    encoded = payload.from_object(data)
    sending = transactions.Sending([(channel, encoded) for channel in channels], "abroadcast")
    transactions.send(sending, on_commit=on_commit)


async def abroadcast(channels: Iterable[str], data: object) -> None:
    """Twin of `broadcast`, at once."""
    encoded = payload.from_object(data)
    await transactions.Sending([(channel, encoded) for channel in channels]).asend()


def unsubscribe(user: str, channel: str = "") -> None:
    """Unsubscribe all connections of a user ID from a channel; without one, from all of theirs."""
    call(lambda member: operations.unsubscribe(member, user, channel), twin="aunsubscribe")


async def aunsubscribe(user: str, channel: str = "") -> None:
    """Twin of `unsubscribe`."""
    await acall(lambda member: operations.unsubscribe(member, user, channel))


def disconnect(user: str) -> None:
    """Disconnect all connections of a user ID; their clients do not reconnect."""
    call(lambda member: operations.disconnect(member, user), twin="adisconnect")


async def adisconnect(user: str) -> None:
    """Twin of `disconnect`."""
    await acall(lambda member: operations.disconnect(member, user))


def presence(channel: str) -> dict[str, ClientInfo]:
    """Who is subscribed to a channel: connection ID → client info."""
    return _presence(call(lambda member: operations.presence(member, channel), twin="apresence"))


async def apresence(channel: str) -> dict[str, ClientInfo]:
    """Twin of `presence`."""
    return _presence(await acall(lambda member: operations.presence(member, channel)))


def presence_stats(channel: str) -> PresenceStats:
    """How many clients and users are subscribed to a channel."""
    return _presence_stats(
        call(lambda member: operations.presence_stats(member, channel), twin="apresence_stats")
    )


async def apresence_stats(channel: str) -> PresenceStats:
    """Twin of `presence_stats`."""
    return _presence_stats(await acall(lambda member: operations.presence_stats(member, channel)))


def history(channel: str) -> list[Publication]:
    """The publications kept in a channel, oldest first."""
    return _history(call(lambda member: operations.history(member, channel), twin="ahistory"))


async def ahistory(channel: str) -> list[Publication]:
    """Twin of `history`."""
    return _history(await acall(lambda member: operations.history(member, channel)))


def history_remove(channel: str) -> None:
    """Forget the publications kept in a channel; offsets go on counting."""
    call(lambda member: operations.history_remove(member, channel), twin="ahistory_remove")


async def ahistory_remove(channel: str) -> None:
    """Twin of `history_remove`."""
    await acall(lambda member: operations.history_remove(member, channel))


def channels() -> list[str]:
    """The channels that have a subscriber, sorted. Heavy beyond some 10 000 channels."""
    return call(operations.channels, twin="achannels")


async def achannels() -> list[str]:
    """Twin of `channels`."""
    return await acall(operations.channels)


def info() -> list[NodeInfo]:
    """The processes of the service."""
    return _info(call(operations.info, twin="ainfo"))


async def ainfo() -> list[NodeInfo]:
    """Twin of `info`."""
    return _info(await acall(operations.info))


# results in Python's words


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
