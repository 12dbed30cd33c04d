"""subscribe, unsubscribe, sub_refresh.

docs/protocol.md, 3.6 to 3.8, 3.12 and 3.14.
Beyond the spec: the order of checks follows Centrifugo 2.8.
"""

from __future__ import annotations

import time

import msgspec

from realtime import channel_rules
from realtime.auth.claims import ExpiredToken, InvalidToken, SubscribeToken
from realtime.clients import maps
from realtime.clients.checks import (
    OPEN,
    SUBSCRIBE,
    Attempt,
    DecidedBy,
    Refusal,
    check_bearer,
    decided_by,
)
from realtime.clients.client import Client
from realtime.clients.renewals import ttl_of
from realtime.clients.session import Subscription
from realtime.clients.subscriptions import Subscribing
from realtime.config.options import ChannelOptions
from realtime.errors import (
    BadRequest,
    DisconnectBadRequest,
    DisconnectInvalidToken,
    Expired,
    NotAvailable,
    PermissionDenied,
    TokenExpired,
)
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ChannelRequest,
    Command,
    EmptyResult,
    FilterNode,
    SubRefreshRequest,
    SubRefreshResult,
    SubscribeRequest,
)
from realtime.streams.tag_filters import InvalidFilter, TagsFilter, tags_filter

AMBIGUOUS = (
    "the name has several user boundaries, or the user's ID contains channel_user_boundary or"
    " channel_user_separator"
)


MUST_RECOVER = 2
"""The bit of `flag` by which a client asks for error 112 where its position cannot be recovered."""


async def subscribe(client: Client, command: Command) -> None:
    """Subscribe the client to a channel it names."""
    request = client.codec.params(command, SubscribeRequest)
    channel = request.channel
    if not channel:
        raise DisconnectBadRequest
    subscribing = client.subscriptions.waiting.get(channel) if request.cursor else None
    if subscribing is not None:
        async with subscribing:
            assert subscribing.pages is not None
            subscribing.pages.check_next(request)
            await _read_on(client, command, request, subscribing)
    else:
        attempt = check(client, channel, request.token or "", request)
        subscribing = _subscribing(client, attempt, request)
        async with subscribing:
            await _ask(client, attempt, request, subscribing)
            if client.is_closing():
                return
            await subscribing.prepare()
            await _read_on(client, command, request, subscribing)
    await subscribing.join()


def _subscribing(client: Client, attempt: Attempt, request: SubscribeRequest) -> Subscribing:
    since, must_recover = request.since, bool(request.flag & MUST_RECOVER)
    if request.type:
        must_recover = request.phase == maps.STREAM
        since = request.position if must_recover else None
    subscribing = Subscribing(
        client.subscriptions,
        attempt.channel,
        Subscription(attempt.options),
        since,
        must_recover=must_recover,
    )
    if request.type and since is None:
        if client.node.maps is None:
            raise NotAvailable
        subscribing.pages = maps.Pages(
            client.node.maps, attempt.channel, has_stream=attempt.options.map != "ephemeral"
        )
    return subscribing


async def _ask(
    client: Client, attempt: Attempt, request: SubscribeRequest, subscribing: Subscribing
) -> None:
    """Let the token or a hook decide, and give the subscription what it may have."""
    subscription = subscribing.subscription
    subscribing.expires_at, subscribing.data = await decide(client, attempt, subscription)
    if request.tags_filter is not None:
        subscribing.tags_filter = _tags_filter(client, attempt.options, request.tags_filter)
    client.session.grant(subscription, request)
    if request.type:
        subscription.follow_map()


async def _read_on(
    client: Client, command: Command, request: SubscribeRequest, subscribing: Subscribing
) -> None:
    """Reply with the next page of a map, or make the client a live subscriber."""
    page = None if client.is_closing() else await subscribing.read_page(request.limit)
    if client.is_closing():
        return
    if page is not None:
        client.reply(command, page)
        subscribing.wait()
        return
    result, expires_at = subscribing.complete(), subscribing.expires_at
    if expires_at is not None:
        result = msgspec.structs.replace(result, expires=True, ttl=ttl_of(expires_at))
    if expires_at is not None or subscribing.subscription.site_answer is not None:
        client.renewals.set_timer()
    client.reply(command, result)
    subscribing.push_kept()


def check(client: Client, channel: ChannelName, token: str, request: SubscribeRequest) -> Attempt:
    """Check a subscription as far as that needs no hook, proxy or token.

    Returns:
        What `decide` needs, with the options of the channel.

    Raises:
        Error: the client may not subscribe.
    """
    room = client.node.user_limits.room(client.user)
    attempt = Attempt(channel, client.session, client.node.config, token=token, room=room)
    try:
        SUBSCRIBE.decide(attempt)
    except PermissionDenied:
        _log_ambiguous(client, attempt)
        raise
    if request.type:
        map_type = channel_rules.map_type(channel, attempt.options, attempt.config)
        maps.check_request(request, attempt.options, map_type)
    return attempt


async def decide(
    client: Client, attempt: Attempt, subscription: Subscription
) -> tuple[float | None, Payload | None]:
    """Let the token or a hook decide about a subscription. Call it in its `Subscribing` block.

    Fills in the channel info and the expiry of the subscription.

    Args:
        client: who subscribes.
        attempt: what `check` returned.
        subscription: the subscription that is being made.

    Returns:
        When the subscription expires, in Unix seconds, and the data for the client in its reply.

    Raises:
        Error, Disconnect: the client may not subscribe.
    """
    match decided_by(attempt, client.node.hooks.decides):
        case DecidedBy.TOKEN:
            verified = await _permit(client, attempt.channel, subscription, attempt.token)
            return verified.expires_at, verified.data
        case DecidedBy.SITE:
            await client.renewals.ask_first(attempt.channel, attempt.token, subscription)
        case DecidedBy.OPTIONS:
            OPEN.decide(attempt)
    return None, None


def _tags_filter(client: Client, options: ChannelOptions, node: FilterNode) -> TagsFilter:
    """Return the filter that a client asks for.

    Raises:
        BadRequest: the channel has no filters, or it is not one.
    """
    try:
        if not options.allow_tags_filter:
            raise InvalidFilter("allow_tags_filter is off")
        return tags_filter(node)
    except InvalidFilter as error:
        client.log_refused("filter by tags", error)
        raise BadRequest from None


def _log_ambiguous(client: Client, attempt: Attempt) -> None:
    """Log why no name can list the user, if that is why the client was refused."""
    channel, config = attempt.channel, attempt.config
    # anonymous clients are refused whatever the name, and so are those without a token it needs
    if (
        client.user
        and not attempt.lacks_token
        and channel_rules.is_user_limited(channel, attempt.options, config)
        and not (
            channel_rules.listed_users(channel, config)
            and channel_rules.can_be_listed(client.user, config)
        )
    ):
        client.log_refused("user-limited channel", ValueError(AMBIGUOUS))


async def _permit(
    client: Client, channel: ChannelName, subscription: Subscription, token: str
) -> SubscribeToken:
    """Return the token of a subscription, checked. Fills in the channel info and the expiry.

    Raises:
        PermissionDenied: the token is missing, or invalid.
        Error, Disconnect: it is expired, or that of another client, user or channel.
    """
    if not token:
        raise PermissionDenied
    verified = await _verified(client, channel, token, PermissionDenied)
    if verified.expires_at is not None and verified.expires_at <= time.time():
        raise Expired
    subscription.override(verified.overrides)
    subscription.info = verified.info
    subscription.expiry_deadline = client.renewals.deadline(verified.expires_at)
    return verified


async def _verified(
    client: Client,
    channel: ChannelName,
    token: str,
    invalid: Refusal,
    wrong: Refusal | None = None,
) -> SubscribeToken:
    """Verify the subscription token of this client for this channel.

    Raises:
        invalid: the token is invalid, or names no channel.
        wrong: it is of another client or channel; None: as the rules of the client say.
        TokenExpired: it is expired, or not valid yet.
    """
    try:
        verified = await client.node.verifier.subscribe(token, time.time())
    except InvalidToken as error:
        client.log_refused("subscription token", error)
        raise invalid from None
    except ExpiredToken:
        raise TokenExpired from None
    rules = client.session.rules
    check_bearer(verified, channel, client.id, client.user, rules, nameless=invalid, wrong=wrong)
    return verified


async def unsubscribe(client: Client, command: Command) -> None:
    """End a subscription. Succeeds even if there is none."""
    request = client.codec.params(command, ChannelRequest)
    if not request.channel:
        raise DisconnectBadRequest
    await client.subscriptions.leave(request.channel)
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
    wrong = DisconnectInvalidToken
    token = await _verified(client, channel, request.token, wrong, wrong)
    if not client.session.is_subscribed(channel, subscription):
        # a refusal is for good: the client must hear first why the server ends the subscription
        await client.subscriptions.wait_until_left(channel)
        raise PermissionDenied
    expires_at = token.refreshed_until
    if expires_at is not None and expires_at <= time.time():
        raise Expired
    subscription.info = token.info
    subscription.expiry_deadline = client.renewals.deadline(expires_at)
    client.renewals.set_timer()
    client.reply(command, SubRefreshResult(expires_at is not None, ttl_of(expires_at)))
