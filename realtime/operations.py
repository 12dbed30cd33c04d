"""The server API as coroutines on a node: what each method checks, and does.

Data are payloads here, and results are messages; `server_api` speaks bytes above this and
`service` Python objects, so both obey the same rules.

Spec: Server HTTP API.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime import channel as channels_
from realtime.engine.base import NodeInfo
from realtime.errors import BadRequest, NotAvailable
from realtime.node import Node
from realtime.options import ChannelOptions
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
    UserID,
)


async def publish(node: Node, channel: ChannelName, data: Payload) -> None:
    """Publish into a channel.

    Raises:
        BadRequest, NamespaceNotFound
    """
    await node.publish(channel, data, _options(node, channel))


async def broadcast(node: Node, channels: Sequence[ChannelName], data: Payload) -> None:
    """Publish the same data into several channels, one after another.

    Not atomic: the channels before a failing one have their publication.

    Raises:
        BadRequest, NamespaceNotFound
    """
    if not channels:
        raise BadRequest
    for channel in channels:
        await publish(node, channel, data)


async def unsubscribe(node: Node, user: UserID, channel: ChannelName) -> None:
    """Unsubscribe a user's connections from a channel, or from all their channels ("").

    Raises:
        BadRequest, NamespaceNotFound
    """
    if not user:
        raise BadRequest
    if channel:
        _options(node, channel)
    await node.unsubscribe_user(user, channel)


async def disconnect(node: Node, user: UserID) -> None:
    """Disconnect a user's connections; they are told not to come back.

    Raises:
        BadRequest
    """
    if not user:
        raise BadRequest
    await node.disconnect_user(user)


async def presence(node: Node, channel: ChannelName) -> PresenceResult:
    """Who is subscribed.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    if not _options(node, channel).presence:
        raise NotAvailable
    return PresenceResult(dict(await node.engine.presence(channel)))


async def presence_stats(node: Node, channel: ChannelName) -> PresenceStatsResult:
    """How many are subscribed.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    return PresenceStatsResult.of((await presence(node, channel)).presence)


async def history(node: Node, channel: ChannelName) -> HistoryResult:
    """What is kept, oldest first.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    if not _options(node, channel).keeps_history:
        raise NotAvailable
    return HistoryResult((await node.engine.history(channel)).publications)


async def history_remove(node: Node, channel: ChannelName) -> None:
    """Forget what is kept; offsets go on counting.

    Raises:
        BadRequest, NamespaceNotFound, NotAvailable
    """
    if not _options(node, channel).keeps_history:
        raise NotAvailable
    await node.engine.remove_history(channel)


async def channels(node: Node) -> list[ChannelName]:
    """Channels with at least one subscriber, sorted."""
    return sorted(await node.engine.channels())


async def info(node: Node) -> list[NodeInfo]:
    """The nodes that are alive."""
    return await node.nodes()


def _options(node: Node, channel: ChannelName) -> ChannelOptions:
    if not channel:
        raise BadRequest
    channels_.check_characters(channel)
    return channels_.options_of(channel, node.config)
