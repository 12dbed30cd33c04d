"""presence, presence_stats, history.

docs/protocol.md, 3.16.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime import channel_rules
from realtime.clients.client import Client
from realtime.config.options import ChannelOptions
from realtime.engine.base import History
from realtime.errors import BadRequest, DisconnectBadRequest, UnrecoverablePosition
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    ClientID,
    ClientInfo,
    Command,
    HistoryRequest,
    HistoryResult,
    PresenceResult,
    PresenceStatsResult,
)


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
    since, reverse = request.since, request.reverse
    if reverse and since is not None and since.offset == 0:
        raise BadRequest  # nothing comes before the first publication
    stream = await _read(client, channel, request)
    if since is not None and since.epoch not in ("", stream.position.epoch):
        raise UnrecoverablePosition
    client.reply(command, HistoryResult(stream.publications, stream.position))


async def _read(client: Client, channel: ChannelName, request: HistoryRequest) -> History:
    """Read the part of history that a request asks for."""
    most = client.node.config.client_history_max_publication_limit
    limit, since = request.limit, request.since
    if client.session.rules.limits_history and most:
        limit = min(limit, most) if limit >= 0 else most
    if limit == 0:
        return await client.node.broker.top(channel)
    start = None
    if since is not None:
        start = since.offset + (-1 if request.reverse else 1)
    return await client.node.broker.history(
        channel, start, None if limit < 0 else limit, reverse=request.reverse
    )


def _channel(client: Client, channel: str | None) -> tuple[ChannelName, ChannelOptions]:
    """Check the channel that a command names, and return it with its options."""
    if not channel:
        raise DisconnectBadRequest
    config = client.node.config
    channel_rules.check_characters(channel)
    if client.session.rules.always_checks_length:
        channel_rules.check_length(channel, config)
    options = channel_rules.options_of(channel, config)
    channel_rules.check_pattern(channel, options, config)
    return channel, options
