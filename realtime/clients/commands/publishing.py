"""publish, send, rpc.

docs/protocol.md, 3.15, 3.18 and 3.19.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from realtime import channel_rules, payload
from realtime.clients.checks import (
    NAME_TO_PUBLISH,
    PUBLISH,
    PUT,
    RIGHT_TO_PUBLISH,
    RIGHT_TO_PUT,
    Attempt,
)
from realtime.clients.client import Client
from realtime.clients.maps import MAP
from realtime.config.options import ChannelOptions
from realtime.engine.maps import check_key
from realtime.errors import (
    BadRequest,
    DisconnectBadRequest,
    Error,
    InternalError,
    LimitExceeded,
    NotAnObject,
)
from realtime.node.hooks import MapChange
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

logger = logging.getLogger("realtime.hooks")


async def publish(client: Client, command: Command) -> Callable[[], Awaitable[None]] | None:
    """Check a publication of the client.

    Returns:
        The rest of the work: publish, with the client info of the publisher, and reply. None if the
        client was closed meanwhile.
    """
    request = client.codec.params(command, PublishRequest)
    channel, raw, rules = request.channel, bytes(request.data), client.session.rules
    if not channel or not (raw or request.type or rules.no_data is not DisconnectBadRequest):
        raise DisconnectBadRequest
    attempt = Attempt(channel, client.session, client.node.config)
    if request.type:
        return await _change(client, command, request, attempt)
    if not raw:
        NAME_TO_PUBLISH.decide(attempt)
        raise rules.no_data
    PUBLISH.decide(attempt)
    options, subscribed = attempt.options, channel in client.session.subscriptions
    data = _checked(request, options)
    answer = await client.node.hooks.publish(client.session.caller(), channel, options, data)
    if answer is not data:
        _check_answer(channel, options, answer)
    # the site may have taken the right away while its hook ran
    if client.is_closing():
        return None
    if subscribed and channel not in client.session.subscriptions:
        RIGHT_TO_PUBLISH.decide(attempt)
    return partial(_publish, client, command, channel, answer, options, client.info_in(channel))


def _checked(request: PublishRequest, options: ChannelOptions) -> Payload:
    try:
        data = payload.check(bytes(request.data))
    except ValueError:
        raise BadRequest from None
    channel_rules.check_data(options, data)
    return data


def _check_answer(channel: ChannelName, options: ChannelOptions, answer: Payload) -> None:
    """Check what the site answered with, in place of what the client sent.

    Raises:
        InternalError: it may not be published into the channel.
    """
    try:
        channel_rules.check_data(options, answer)
    except NotAnObject as error:
        logger.error("The site's answer for %r cannot be published: %s", channel, error.message)
        raise InternalError from None


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


async def _change(
    client: Client, command: Command, request: PublishRequest, attempt: Attempt
) -> Callable[[], Awaitable[None]] | None:
    """Check a change of a map; see `publish`."""
    PUT.decide(attempt)
    session, channel, options = client.session, attempt.channel, attempt.options
    key = {"client": client.id, "user": client.user}.get(options.map_key, request.key or "")
    check_key(key)
    if request.type != MAP:
        raise BadRequest
    data = None if request.removed else _checked(request, options)
    change = MapChange(key, data)
    subscribed = attempt.is_subscribed
    answer = await client.node.hooks.put(session.caller(), channel, options, change)
    if answer.data is not None and answer.data is not data:
        _check_answer(channel, options, answer.data)
    if client.is_closing():
        return None
    if subscribed and not attempt.is_subscribed:
        RIGHT_TO_PUT.decide(attempt)
    return partial(_put, client, command, channel, answer, options, client.info_in(channel))


async def _put(
    client: Client,
    command: Command,
    channel: ChannelName,
    change: MapChange,
    options: ChannelOptions,
    info: ClientInfo,
) -> None:
    published = await client.node.put(channel, change.key, change.data, options, info)
    if published.reason == "full":
        raise LimitExceeded
    client.reply(command, EmptyResult())


async def rpc(client: Client, command: Command) -> None:
    """Call an RPC method of the site and reply with what it returns."""
    request = client.codec.params(command, RPCRequest)
    caller, method = client.session.caller(), request.method or ""
    data = await client.node.hooks.rpc(caller, method, bytes(request.data))
    client.reply(command, RPCResult(data))


async def send(client: Client, command: Command) -> None:
    """Hand a message to the site. It has no reply, even if it fails.

    Without a hook for messages the params are not even decoded.
    """
    hooks = client.node.hooks
    if not hooks.wants_messages:
        return
    try:
        data = bytes(client.codec.params(command, SendRequest).data)
        await hooks.message(client.session.caller(), data)
    except Error as error:
        client.log_refused("message", error)
