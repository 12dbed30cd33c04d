"""connect, refresh, ping.

Spec: Authentication, Client connection; Connection expiry.
Beyond the spec: the order of checks follows Centrifugo 2.8.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

import msgspec

from realtime import channel_rules
from realtime.auth.claims import ExpiredToken, InvalidToken, ObserverToken
from realtime.clients.client import Client
from realtime.clients.commands.subscribing import Subscribing, ttl_of
from realtime.clients.session import Subscription
from realtime.config.options import Config
from realtime.errors import (
    BadRequest,
    DisconnectBadRequest,
    DisconnectConnectionLimit,
    DisconnectExpired,
    DisconnectInvalidToken,
    Error,
    Expired,
    TokenExpired,
)
from realtime.node.hooks import Identity
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
)


async def connect(client: Client, command: Command) -> None:
    """Identify the client, subscribe it to its server-side channels, reply."""
    request = client.codec.params(command, ConnectRequest)
    config = client.node.config
    identity = _in_force(await _identify(client, request), client.node)
    try:
        wanted = _server_side_channels(identity, config)
    except Error as error:  # the mistake of whoever named them, not of the client
        client.log_refused("subscription by the server", error)
        raise
    if client.is_closing():
        return

    limit = config.client_user_connection_limit
    others = client.node.hub.connections(identity.user) if limit > 0 and identity.user else []
    if 0 < limit <= len(others):
        raise DisconnectConnectionLimit

    expires_at = identity.expires_at
    if expires_at is not None and expires_at <= time.time():
        raise Expired
    server_side_refresh = identity.server_side_refresh
    client.session.connected(
        identity.user,
        identity.info,
        client.expiry_deadline(expires_at),
        server_side_refresh=server_side_refresh,
        auth_session=identity.auth_session,
        visible=identity.visible,
    )
    alone = config.user_personal_single_connection and config.user_subscribe_to_personal
    alone = alone and identity.user != ""
    if alone:
        client.node.spare(client)
    if identity.visible:
        client.node.hub.add(client)
    client.emit("connected")
    client.set_timer()

    async with AsyncExitStack() as stack:
        pending = {
            name: await stack.enter_async_context(
                Subscribing(client, name, subscription, _since(request, name))
            )
            for name, subscription in wanted.items()
        }
        if client.is_closing():
            return
        subs = {name: subscribing.complete() for name, subscribing in pending.items()}
        client.reply(
            command,
            ConnectResult(
                client=client.id,
                version=client.node.version,
                expires=expires_at is not None and not server_side_refresh,
                ttl=0 if server_side_refresh else ttl_of(expires_at),
                subs=subs or None,
                data=identity.data,
            ),
        )
    for subscribing in pending.values():
        await subscribing.join()
    if alone and not client.is_closing():
        await client.node.disconnect_user(
            identity.user, DisconnectConnectionLimit(), keep=client.id
        )


async def _identify(client: Client, request: ConnectRequest) -> Identity:
    """Who is this? A token is always verified and always wins."""
    config = client.node.config
    if request.token:
        return await _verified(client, request.token, TokenExpired)
    identity = await client.node.hooks.connect(
        client.caller(), bytes(request.data), request.name or "", request.version or ""
    )
    if identity is not None:
        return identity
    if config.client_anonymous or config.client_insecure:
        return Identity("")
    raise DisconnectBadRequest


def _server_side_channels(identity: Identity, config: Config) -> dict[ChannelName, Subscription]:
    """The channels the server subscribes this client to; client-side rules do not apply.

    Raises:
        BadRequest, LimitExceeded, NamespaceNotFound: a name in the token is not a channel's.
    """
    names = list(identity.channels)
    if config.user_subscribe_to_personal and identity.user:
        names.append(channel_rules.personal_channel(identity.user, config))
    wanted: dict[ChannelName, Subscription] = {}
    for name in names:
        if not name:
            raise BadRequest
        channel_rules.check_characters(name)
        channel_rules.check_length(name, config)
        wanted[name] = Subscription(
            channel_rules.options_of(name, config),
            server_side=True,
            visible=identity.visible,
        )
    return wanted


def _since(request: ConnectRequest, name: ChannelName) -> StreamPosition | None:
    """Where a reconnecting client wants to continue a server-side subscription."""
    sub = (request.subs or {}).get(name)
    return None if sub is None else sub.since


async def refresh(client: Client, command: Command) -> None:
    """Replace the connection's expiry (and info) by those of a renewed token."""
    request = client.codec.params(command, RefreshRequest)
    if not request.token or client.session.server_side_refresh:
        raise DisconnectBadRequest
    identity = _in_force(await _verified(client, request.token, DisconnectExpired), client.node)
    session = client.session
    if identity.visible is not session.visible or not (
        session.visible or set(identity.channels) == set(session.subscriptions)
    ):
        client.log_refused("connection token", InvalidToken("not one of the same kind"))
        raise DisconnectInvalidToken
    expires_at = identity.expires_at
    client.extend(client.expiry_deadline(expires_at), identity.info)
    client.reply(
        command,
        RefreshResult(
            client=client.id,
            version=client.node.version,
            expires=expires_at is not None,
            ttl=ttl_of(expires_at),
        ),
    )


async def _verified(
    client: Client, token: str, when_expired: type[TokenExpired] | type[DisconnectExpired]
) -> Identity:
    """Who a verified token says that the client is.

    Raises:
        DisconnectInvalidToken
        when_expired
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
    return Identity(verified.user, verified.info, verified.channels, verified.expires_at)


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


async def ping(client: Client, command: Command) -> None:
    """Reply with the id alone."""
    client.codec.params(command, EmptyRequest)
    client.reply(command, NoResult())
