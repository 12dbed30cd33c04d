"""presence, presence_stats, history.

While the process is overloaded they are refused: each may be as much work as a thousand deliveries,
and a client can ask again later. What is published meanwhile is delivered.

docs/protocol.md, 3.16.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime import channel_rules
from realtime.clients.client import Client
from realtime.config.options import ChannelOptions
from realtime.errors import DisconnectBadRequest, TooManyRequests
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    ClientID,
    ClientInfo,
    Command,
    HistoryRequest,
    PresenceResult,
    PresenceStatsResult,
)
from realtime.streams import reading


async def presence(client: Client, command: Command) -> None:
    """Reply with the clients that are present in a channel."""
    client.reply(command, PresenceResult(dict(await _present(client, command))))


async def presence_stats(client: Client, command: Command) -> None:
    """Reply with the numbers of clients and users that are present in a channel."""
    client.reply(command, PresenceStatsResult.of(await _present(client, command)))


async def _present(client: Client, command: Command) -> Mapping[ClientID, ClientInfo]:
    channel, options = _channel(client, client.codec.params(command, ChannelRequest).channel)
    subscribed = channel in client.session.subscriptions
    hidden = client.session.rules.hidden
    channel_rules.check_presence(options, client.user, subscribed, hidden)
    return await client.node.presence.get(channel)


async def history(client: Client, command: Command) -> None:
    """Reply with history of a channel: the part that the client asks for."""
    request = client.codec.params(command, HistoryRequest)
    channel, options = _channel(client, request.channel)
    subscribed = channel in client.session.subscriptions
    hidden = client.session.rules.hidden
    channel_rules.check_history(options, client.user, subscribed, hidden)
    limit, most = request.limit, client.node.config.client_history_max_publication_limit
    if client.session.rules.limits_history and most:
        limit = min(limit, most) if limit >= 0 else most
    result = await reading.read(
        client.node.broker, channel, limit=limit, since=request.since, reverse=request.reverse
    )
    client.reply(command, result)


def _channel(client: Client, channel: str | None) -> tuple[ChannelName, ChannelOptions]:
    """Check the channel that a command names, and return it with its options.

    Raises:
        TooManyRequests: the process is overloaded.
    """
    if not channel:
        raise DisconnectBadRequest
    if client.node.loop_lag.is_overloaded:
        raise TooManyRequests
    config = client.node.config
    channel_rules.check_characters(channel)
    if client.session.rules.always_checks_length:
        channel_rules.check_length(channel, config)
    options = channel_rules.options_of(channel, config)
    channel_rules.check_pattern(channel, options, config)
    return channel, options
