"""presence, presence_stats, history.

Spec: Client WebSocket protocol, Commands.
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
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
)


async def presence(client: Client, command: Command) -> None:
    """Who is subscribed to a channel of the client's."""
    channel, options = _channel(client, command)
    channel_rules.check_presence(options, channel in client.session.subscriptions)
    present = await client.node.presence.get(channel)
    client.reply(command, PresenceResult(dict(present)))


async def presence_stats(client: Client, command: Command) -> None:
    """How many clients and users are subscribed to a channel of the client's."""
    channel, options = _channel(client, command)
    channel_rules.check_presence(options, channel in client.session.subscriptions)
    present = await client.node.presence.get(channel)
    client.reply(command, PresenceStatsResult.of(present))


async def history(client: Client, command: Command) -> None:
    """What is kept in a channel of the client's, oldest first."""
    channel, options = _channel(client, command)
    channel_rules.check_history(options, channel in client.session.subscriptions)
    stream = await client.node.broker.history(channel)
    client.reply(command, HistoryResult(stream.publications))


def _channel(client: Client, command: Command) -> tuple[ChannelName, ChannelOptions]:
    request = client.codec.params(command, ChannelRequest)
    if not request.channel:
        raise DisconnectBadRequest
    channel_rules.check_characters(request.channel)
    return request.channel, channel_rules.options_of(request.channel, client.node.config)
