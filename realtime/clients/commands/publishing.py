"""publish, send, rpc.

Spec: Client WebSocket protocol, Commands; Channel options (publish, subscribe_to_publish).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from realtime import channel_rules, payload
from realtime.clients.client import Client
from realtime.config.options import ChannelOptions
from realtime.errors import BadRequest, DisconnectBadRequest, Error
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientInfo,
    Command,
    EmptyResult,
    PublishRequest,
    RPCRequest,
    RPCResult,
    SendRequest,
)


async def publish(client: Client, command: Command) -> Callable[[], Awaitable[None]]:
    """Check a publication of a client, which says who published it.

    Returns:
        The rest of the work: publish and reply.
    """
    request = client.codec.params(command, PublishRequest)
    channel, raw = request.channel, bytes(request.data)
    if not channel or not raw:
        raise DisconnectBadRequest
    channel_rules.check_characters(channel)
    options = channel_rules.options_of(channel, client.node.config)
    subscribed = channel in client.session.subscriptions
    channel_rules.check_publish(options, subscribed, client.node.config)
    try:
        data = payload.check(raw)
    except ValueError:
        raise BadRequest from None
    data = await client.node.hooks.publish(client.caller(), channel, options, data)
    return partial(_publish, client, command, channel, data, options, client.info_in(channel))


async def _publish(
    client: Client,
    command: Command,
    channel: ChannelName,
    data: Payload,
    options: ChannelOptions,
    info: ClientInfo,
) -> None:
    await client.node.publish(channel, data, options, info)
    client.reply(command, EmptyResult())


async def rpc(client: Client, command: Command) -> None:
    """Call a method of the site."""
    request = client.codec.params(command, RPCRequest)
    data = await client.node.hooks.rpc(client.caller(), request.method or "", bytes(request.data))
    client.reply(command, RPCResult(data))


async def send(client: Client, command: Command) -> None:
    """A message to the site, which gets no answer, not even when it fails.

    Where the site wants none, the params are not even decoded.
    """
    hooks = client.node.hooks
    if not hooks.wants_messages:
        return
    try:
        await hooks.message(client.caller(), bytes(client.codec.params(command, SendRequest).data))
    except Error as error:
        client.log_refused("message", error)
