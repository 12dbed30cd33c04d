"""subscribe, unsubscribe, sub_refresh.

docs/protocol.md, 3.6 to 3.8, 3.12 and 3.14.
Beyond the spec: the order of checks follows Centrifugo 2.8.
"""

from __future__ import annotations

import time

import msgspec

from realtime import channel_rules
from realtime.auth.claims import ExpiredToken, InvalidToken, SubscribeToken
from realtime.clients.client import Client
from realtime.clients.commands.subscribing import Subscribing, ttl_of
from realtime.clients.session import Subscription
from realtime.errors import (
    BadRequest,
    DisconnectBadRequest,
    DisconnectInvalidToken,
    Expired,
    PermissionDenied,
    TokenExpired,
)
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    Command,
    EmptyResult,
    SubRefreshRequest,
    SubRefreshResult,
    SubscribeRequest,
)

AMBIGUOUS = (
    "the name has several user boundaries, or the user's ID contains channel_user_boundary or"
    " channel_user_separator"
)


async def subscribe(client: Client, command: Command) -> None:
    """Subscribe the client to a channel it names."""
    request = client.codec.params(command, SubscribeRequest)
    channel = request.channel
    if not channel:
        raise DisconnectBadRequest
    config = client.node.config
    channel_rules.check_characters(channel)
    channel_rules.check_length(channel, config)
    client.session.check_subscribe(channel)
    options = channel_rules.options_of(channel, config)
    channel_rules.check_pattern(channel, options, config)
    try:
        channel_rules.check_subscribe(channel, options, client.user, config)
    except PermissionDenied:
        if channel_rules.is_user_limited(channel, options, config) and not (
            channel_rules.listed_users(channel, config)
            and channel_rules.can_be_listed(client.user, config)
        ):
            client.log_refused("user-limited channel", ValueError(AMBIGUOUS))
        raise

    subscription = Subscription(options)
    async with Subscribing(client, channel, subscription, request.since) as subscribing:
        expires_at = await _permit(client, channel, subscription, request.token or "")
        if client.is_closing():
            return
        await subscribing.prepare()
        if client.is_closing():
            return
        result = subscribing.complete()
        if expires_at is not None:
            result = msgspec.structs.replace(result, expires=True, ttl=ttl_of(expires_at))
            client.set_timer()
        client.reply(command, result)
    await subscribing.join()


async def _permit(
    client: Client, channel: ChannelName, subscription: Subscription, token: str
) -> float | None:
    """Check the token of a private channel, or ask the hooks about any other channel.

    Fills in the channel info and the expiry of the subscription.

    Returns:
        When the subscription expires, Unix seconds; None for never.

    Raises:
        Error: the token is missing, of another client or channel, or expired; or a hook refuses.
        Disconnect: a hook says so.
    """
    config, hooks = client.node.config, client.node.hooks
    if channel_rules.is_private(channel, config):
        if not token:
            raise PermissionDenied
        verified = await _verified(client, channel, token, PermissionDenied)
        if verified.expires_at is not None and verified.expires_at <= time.time():
            raise Expired
        subscription.info = verified.info
        subscription.expiry_deadline = client.expiry_deadline(verified.expires_at)
        return verified.expires_at
    options = subscription.options
    limited = channel_rules.is_user_limited(channel, options, config)
    if not limited and hooks.decides(channel, options):
        subscription.info = await hooks.subscribe(client.caller(), channel, token)
    else:
        channel_rules.check_unasked(channel, options, config)
    return None


async def _verified(
    client: Client,
    channel: ChannelName,
    token: str,
    refusal: type[PermissionDenied] | type[DisconnectInvalidToken],
) -> SubscribeToken:
    """Verify the subscription token of this client for this channel.

    Raises:
        refusal: the token is invalid, or of another client or channel.
        TokenExpired: the token is expired, or not valid yet.
    """
    try:
        verified = await client.node.verifier.subscribe(token, time.time())
    except InvalidToken as error:
        client.log_refused("subscription token", error)
        raise refusal from None
    except ExpiredToken:
        raise TokenExpired from None
    if verified.channel != channel or not verified.is_for(client.id, client.user):
        raise refusal
    return verified


async def unsubscribe(client: Client, command: Command) -> None:
    """End a subscription. Succeeds even if there is none."""
    request = client.codec.params(command, ChannelRequest)
    if not request.channel:
        raise DisconnectBadRequest
    await client.leave(request.channel)
    client.reply(command, EmptyResult())


async def sub_refresh(client: Client, command: Command) -> None:
    """Replace the subscription's expiry and channel info with those of a new token.

    Beyond the spec: an expired token is error 109; Centrifugo 2.8 lifts the expiry then.
    """
    request = client.codec.params(command, SubRefreshRequest)
    channel = request.channel
    if not channel:
        raise DisconnectBadRequest
    subscription = client.session.subscriptions.get(channel)
    if subscription is None:
        raise PermissionDenied
    if subscription.server_side:
        raise DisconnectBadRequest
    if not request.token:
        raise BadRequest
    token = await _verified(client, channel, request.token, DisconnectInvalidToken)
    if not client.session.is_subscribed(channel, subscription):
        raise PermissionDenied  # unsubscribed while the keys were fetched
    expires_at = token.refreshed_until
    if expires_at is not None and expires_at <= time.time():
        raise Expired
    subscription.info = token.info
    subscription.expiry_deadline = client.expiry_deadline(expires_at)
    client.set_timer()
    client.reply(command, SubRefreshResult(expires_at is not None, ttl_of(expires_at)))
