"""presence, presence_stats, history.

While the process is overloaded they are refused: each may be as much work as a thousand deliveries,
and a client can ask again later. What is published meanwhile is delivered.

docs/protocol.md, 3.16.
"""

from __future__ import annotations

from collections.abc import Mapping

from realtime import channel_rules
from realtime.clients.checks import HISTORY, PRESENCE, Attempt, Checks
from realtime.clients.client import Client
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
    channel = client.codec.params(command, ChannelRequest).channel
    return await client.node.presence.get(_checked(client, channel, PRESENCE))


async def history(client: Client, command: Command) -> None:
    """Reply with history of a channel: the part that the client asks for."""
    request = client.codec.params(command, HistoryRequest)
    channel = _checked(client, request.channel, HISTORY)
    limit, most = request.limit, client.node.config.client_history_max_publication_limit
    if client.session.rules.limits_history and most:
        limit = min(limit, most) if limit >= 0 else most
    node = client.node
    joins = channel_rules.options_of(channel, node.config).join_on_read
    result = await reading.read(
        node.broker,
        channel,
        limit=limit,
        since=request.since,
        reverse=request.reverse,
        joins=joins,
    )
    client.reply(command, result)


def _checked(client: Client, channel: str | None, checks: Checks) -> ChannelName:
    """Check that the client may read a channel, and return its name.

    Raises:
        TooManyRequests: the process is overloaded.
        Error, Disconnect: the client may not.
    """
    if not channel:
        raise DisconnectBadRequest
    if client.node.loop_lag.is_overloaded:
        raise TooManyRequests
    checks.decide(Attempt(channel, client.session, client.node.config))
    return channel
