"""presence, presence_stats, history.

docs/protocol.md, 3.16.
"""

from __future__ import annotations

from realtime import channel_rules
from realtime.clients.client import Client
from realtime.config.options import ChannelOptions
from realtime.errors import DisconnectBadRequest
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    Command,
    HistoryRequest,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
)


async def presence(client: Client, command: Command) -> None:
    """Reply with the clients that are present in a channel."""
    channel, options = _channel(client, command)
    channel_rules.check_presence(options, client.user, channel in client.session.subscriptions)
    present = await client.node.presence.get(channel)
    client.reply(command, PresenceResult(dict(present)))


async def presence_stats(client: Client, command: Command) -> None:
    """Reply with the numbers of clients and users that are present in a channel."""
    channel, options = _channel(client, command)
    channel_rules.check_presence(options, client.user, channel in client.session.subscriptions)
    present = await client.node.presence.get(channel)
    client.reply(command, PresenceStatsResult.of(present))


async def history(client: Client, command: Command) -> None:
    """Reply with the history of a channel, oldest publication first."""
    channel, options = _channel(client, command, HistoryRequest)
    channel_rules.check_history(options, client.user, channel in client.session.subscriptions)
    stream = await client.node.broker.history(channel)
    client.reply(command, HistoryResult(stream.publications))


def _channel(
    client: Client,
    command: Command,
    shape: type[ChannelRequest] | type[HistoryRequest] = ChannelRequest,
) -> tuple[ChannelName, ChannelOptions]:
    """Return the channel a command names, and its options."""
    request = client.codec.params(command, shape)
    if not request.channel:
        raise DisconnectBadRequest
    channel_rules.check_characters(request.channel)
    channel_rules.check_length(request.channel, client.node.config)
    options = channel_rules.options_of(request.channel, client.node.config)
    channel_rules.check_pattern(request.channel, options, client.node.config)
    return request.channel, options
