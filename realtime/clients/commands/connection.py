"""connect, refresh, ping, pong.

docs/protocol.md, 3.1 to 3.5, 3.13 and 3.17.
Beyond the spec: the order of checks follows Centrifugo 2.8.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack

import msgspec

from realtime import channel_rules, logs
from realtime.auth.claims import ExpiredToken, InvalidToken, ObserverToken
from realtime.clients.client import Client
from realtime.clients.renewals import ttl_of, whole_ttl
from realtime.clients.session import Subscription
from realtime.clients.subscriptions import Subscribing
from realtime.cluster.control import DisconnectUser
from realtime.errors import (
    BadRequest,
    DisconnectBadRequest,
    DisconnectChannelLimit,
    DisconnectExpired,
    DisconnectForced,
    DisconnectInvalidToken,
    DisconnectPermissionDenied,
    Error,
    Expired,
    NamespaceNotFound,
    TokenExpired,
)
from realtime.node.control import disconnect_of
from realtime.node.hooks import Identity, emulated_headers
from realtime.node.node import Node
from realtime.protocol.messages import (
    ChannelName,
    Command,
    ConnectRequest,
    ConnectResult,
    EmptyRequest,
    NoResult,
    RefreshRequest,
    RefreshResult,
    StreamPosition,
    SubscribeResult,
    UserID,
)
from realtime.protocol.requests import library_of

UNLISTABLE_USER = (
    "no channel name can list the user: the ID contains channel_user_boundary or"
    " channel_user_separator, or there is no boundary"
)

BLOCKED = "blocked"
"""What operators read of a connection that was refused because its user is blocked."""

logger = logging.getLogger("realtime.client")


async def connect(client: Client, command: Command) -> None:
    """Identify the client, subscribe it to its server-side channels, reply."""
    request = client.codec.params(command, ConnectRequest)
    node = client.node
    identity, revoked = await identify(client, request)
    subscriptions = server_side_subscriptions(client, identity, request)
    if client.is_closing():
        return
    open_session(client, identity)
    for subscription in subscriptions.values():
        client.session.grant(subscription, None)
    node.single_connection.begin(client)
    async with AsyncExitStack() as stack:
        channels = {
            name: await stack.enter_async_context(
                Subscribing(client.subscriptions, name, subscription, _since(request, name))
            )
            for name, subscription in subscriptions.items()
        }
        for name, told in identity.subs.items():
            if name in channels:
                channels[name].data = told.data
        for channel in revoked:
            client.session.revoke(channel)
        for subscribing in channels.values():
            await subscribing.prepare()
        if client.is_closing():
            return
        complete(
            client, channels, lambda subs: client.reply(command, _result(client, identity, subs))
        )
    for subscribing in channels.values():
        await subscribing.join()
    await node.single_connection.finish(client)


def complete(
    client: Client,
    making: Mapping[ChannelName, Subscribing],
    reply: Callable[[dict[ChannelName, SubscribeResult]], None],
) -> None:
    """Make a client live in all of its channels, in one turn of the loop.

    Args:
        making: the channels that it comes with.
        reply: tells it what became of them.
    """
    reply({channel: subscribing.complete() for channel, subscribing in making.items()})
    for subscribing in making.values():
        subscribing.push_kept()
    client.subscriptions.connected()
    client.renewals.set_timer()
    if client.is_pinged:
        client.start_pings()


async def identify(client: Client, request: ConnectRequest) -> tuple[Identity, list[ChannelName]]:
    """Identify a client.

    Returns:
        Who it is, and the channels from which the server has unsubscribed the user meanwhile.

    Raises:
        DisconnectBadRequest: the headers in its request cannot be passed on.
        Error, Disconnect: it may not connect, or the server has disconnected the user meanwhile.
        DisconnectForced: its user is blocked.
    """
    node = client.node
    client.library = library_of(request)
    if request.headers and node.hooks.emulated_headers:
        emulated = emulated_headers(request.headers, node.hooks.emulated_headers)
        client.session.handshake = msgspec.structs.replace(client.handshake, emulated=emulated)
    with node.identifying.begin() as missed:
        identity = _in_force(await _identity_of(client, request), node)
        revocations = missed(identity.user)
    revoked: list[ChannelName] = []
    for message in revocations:
        if isinstance(message, DisconnectUser):
            raise disconnect_of(message)
        revoked.append(message.channel)
    if node.blocks.has(identity.user):
        node.observer.closed(identity.user, DisconnectForced.code, BLOCKED)
        client.log_refused("connection", PermissionError(f"user {identity.user!r} is blocked"))
        raise DisconnectForced
    return identity, revoked


async def _identity_of(client: Client, request: ConnectRequest) -> Identity:
    """Identify a client by its token, or by hooks, or as anonymous. A token always decides."""
    config = client.node.config
    if request.token:
        return await _verified(client, request.token, TokenExpired)
    identity = await client.node.hooks.connect(
        client.session.caller(), bytes(request.data), request.name or "", request.version or ""
    )
    if identity is not None:
        return identity
    if config.client_anonymous or config.client_insecure:
        return Identity("")
    logger.info(
        "Refused client %s: it sent no token, and no login session and no hook identifies it",
        client.id,
        extra=logs.of(client),
    )
    raise DisconnectBadRequest


def _in_force(identity: Identity, node: Node) -> Identity:
    """Apply what the node does to every expiry.

    Observers are an exception: their connections always expire, and they refresh by themselves.
    """
    if not identity.visible:
        return identity
    return msgspec.structs.replace(
        identity,
        expires_at=None if node.config.client_insecure else identity.expires_at,
        server_side_refresh=identity.server_side_refresh or node.hooks.refreshes,
    )


def server_side_subscriptions(
    client: Client, identity: Identity, request: ConnectRequest
) -> dict[ChannelName, Subscription]:
    """Return the server-side subscriptions of a client. Client-side rules do not apply to them.

    Where the generation has it so, they include those to channels that the client asks for, and
    might subscribe to itself.

    Raises:
        BadRequest: the user's ID cannot be listed in a name, so that its personal channel would be
            open to another user.
        BadRequest, LimitExceeded, NamespaceNotFound: the token or hook names a wrong channel.
        DisconnectBadRequest: the client asks for a channel of an unknown namespace.
        DisconnectChannelLimit: there are too many.
    """
    config, rules = client.node.config, client.session.rules
    names = list(identity.channels)
    try:
        channel_rules.check_personal(identity.user, config)
    except BadRequest:
        client.log_refused("personal channel", ValueError(UNLISTABLE_USER))
        raise
    if config.user_subscribe_to_personal and identity.user:
        names.append(channel_rules.personal_channel(identity.user, config))
    try:
        subscriptions = {name: _subscription(client, name, identity) for name in names}
    except Error as error:  # a mistake of the site, not of the client
        client.log_refused("server-side subscription", error)
        raise
    if rules.subscribes_as_asked and identity.visible:
        room = client.node.user_limits.room(identity.user)
        for name in _asked(client, identity.user, request):
            if name not in subscriptions and len(subscriptions) < room:
                subscriptions[name] = _subscription(client, name, identity)
    if rules.limits_server_side and 0 < config.client_channel_limit < len(subscriptions):
        raise DisconnectChannelLimit
    return subscriptions


def _asked(client: Client, user: UserID, request: ConnectRequest) -> Iterator[ChannelName]:
    """Yield the channels in the request to which the client might subscribe itself.

    Raises:
        DisconnectBadRequest: the namespace of a channel is unknown.
    """
    config, hooks = client.node.config, client.node.hooks
    for name, sub in (request.subs or {}).items():
        if sub is None:
            continue
        try:
            options = channel_rules.check_channel(name, config)
            channel_rules.check_pattern(name, options, config)
            channel_rules.check_subscribe(name, options, user, config)
            channel_rules.check_unasked(name, options, config)
        except NamespaceNotFound:
            raise DisconnectBadRequest from None
        except Error:
            continue
        if channel_rules.is_private(name, config):
            continue
        is_limited = channel_rules.is_user_limited(name, options, config)
        if is_limited or not hooks.decides(name, options):
            yield name


def _subscription(client: Client, name: ChannelName, identity: Identity) -> Subscription:
    if not name:
        raise BadRequest
    config = client.node.config
    channel_rules.check_characters(name)
    channel_rules.check_length(name, config, client.session.rules.too_long)
    options = channel_rules.options_of(name, config)
    subscription = Subscription(options, server_side=True, visible=identity.visible)
    if (told := identity.subs.get(name)) is not None:
        subscription.override(told.overrides)
        subscription.info = told.info
    return subscription


def _since(request: ConnectRequest, name: ChannelName) -> StreamPosition | None:
    """Return where a reconnecting client wants to continue a server-side subscription."""
    sub = (request.subs or {}).get(name)
    return None if sub is None else sub.since


def open_session(client: Client, identity: Identity) -> None:
    """Begin the session of a client that was identified.

    Raises:
        DisconnectConnectionLimit: its user has too many connections.
        Expired: its identity is out of date already.
    """
    client.node.user_limits.check_connection(identity.user)
    expires_at = identity.expires_at
    if expires_at is not None and expires_at <= time.time():
        raise Expired
    client.session.connected(identity, client.renewals.deadline(expires_at))
    client.node.flood_debts.connected(client)
    if identity.visible:
        client.node.hub.add(client)
        client.node.user_limits.opened(client)
        client.node.observer.opened(client)
    client.emit("connected")
    client.renewals.set_timer()


def _result(
    client: Client, identity: Identity, subs: dict[ChannelName, SubscribeResult]
) -> ConnectResult:
    # the site may have set another expiry since the client was identified
    deadline = None if identity.server_side_refresh else client.session.expiry_deadline
    session, answers = client.transport.session, client.session.rules.answers
    is_pinged, config = client.is_pinged, client.node.config
    return ConnectResult(
        client=client.id,
        version=client.node.version,
        expires=deadline is not None,
        ttl=0 if deadline is None else whole_ttl(deadline - client.node.timers.now()),
        subs=subs or None,
        data=identity.data,
        ping=config.ping_interval if is_pinged else 0,
        pong=is_pinged and client.node.pings.expects_pongs and answers,
        session=session,
        node=client.node.uid if session and answers else "",
        time=int(time.time() * 1000) if config.client_connect_include_server_time else 0,
    )


async def refresh(client: Client, command: Command) -> None:
    """Replace the connection's expiry and info with those of a new token of the same user.

    Beyond the spec: Centrifugo 2.8 accepts a token of any user. Then a user who gets no tokens any
    more could stay with those of another.
    """
    request = client.codec.params(command, RefreshRequest)
    session = client.session
    if not request.token or session.server_side_refresh:
        raise DisconnectBadRequest
    identity = _in_force(await _verified(client, request.token, DisconnectExpired), client.node)
    if identity.visible is not session.visible or not (
        session.visible or set(identity.channels) == set(session.subscriptions)
    ):
        client.log_refused("connection token", InvalidToken("not one of the same kind"))
        raise DisconnectInvalidToken
    if identity.user != session.user:
        client.log_refused("connection token", InvalidToken("of another user"))
        # after a login or logout a page gets tokens of its new state: let it reconnect with one
        known = identity.user and session.user
        raise DisconnectInvalidToken if known else DisconnectExpired
    if identity.expires_at is not None and identity.expires_at <= time.time():
        raise Expired
    other_channels = session.rules.other_channels
    if other_channels is not None and not session.has_channels(identity.channels):
        raise other_channels
    client.renewals.extend(client.renewals.deadline(identity.expires_at), identity.info)
    if identity.meta is not None:
        session.meta = identity.meta
    client.reply(
        command,
        RefreshResult(
            client=client.id,
            version=client.node.version,
            expires=identity.expires_at is not None,
            ttl=ttl_of(identity.expires_at),
        ),
    )


async def _verified(
    client: Client, token: str, when_expired: type[TokenExpired] | type[DisconnectExpired]
) -> Identity:
    """Verify a connection token, or one of an observer.

    Raises:
        DisconnectInvalidToken: the token is malformed, or its signature is wrong.
        DisconnectPermissionDenied: it names no user, and such tokens are not allowed.
        when_expired: the token is expired, or not valid yet.
    """
    try:
        verified = await client.node.verifier.identify(token, time.time())
    except InvalidToken as error:
        client.log_refused("connection token", error)
        raise DisconnectInvalidToken from None
    except ExpiredToken:
        raise when_expired from None
    if isinstance(verified, ObserverToken):
        return Identity(
            "", channels=verified.channels, expires_at=verified.expires_at, visible=False
        )
    if not verified.user and client.node.config.disallow_anonymous_connection_tokens:
        client.log_refused("connection token", InvalidToken("names no user"))
        raise DisconnectPermissionDenied
    return Identity(
        verified.user,
        verified.info,
        verified.channels,
        verified.expires_at,
        subs=verified.subs,
        meta=verified.meta,
    )


async def pong(client: Client, command: Command) -> None:
    """Take the answer to a ping of the server."""
    client.session.take_pong()


async def ping(client: Client, command: Command) -> None:
    """Reply with the ID alone."""
    client.codec.params(command, EmptyRequest)
    client.reply(command, NoResult())
