"""Sign tokens for the users of the site, with the configuration in force.

docs/protocol.md, 3.2 and 3.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

from realtime import channel_rules
from realtime.auth import issue
from realtime.auth.claims import ConnectToken, ExpiredToken, InvalidToken, SubscribeToken
from realtime.auth.issue import SubscriptionTokenOptions
from realtime.auth.verifier import Verifier
from realtime.config import sources
from realtime.hooks.site_values import to_payload, user_id
from realtime.payload import Payload

DEFAULT_TTL = 3600.0
"""Seconds. A token cannot be revoked: a user who lost a permission keeps it until this expiry."""


class ConnectionTokenOptions(TypedDict, total=False):
    """Options of tokens for connections."""

    ttl: float | None
    """Seconds until the token expires and the client must fetch a new one; None for never; 3600 if
    it is left out."""
    info: object
    """JSON-serialisable connection info, which others see as `conn_info`."""
    channels: Iterable[str]
    """Names of server-side subscriptions."""
    subs: Mapping[str, object] | None
    """Server-side subscriptions with more about each: channel → the claims `info`, `data` and
    `override` of docs/tokens.md."""
    meta: object
    """JSON-serialisable value that hooks and proxies can read, and no client."""
    expire_at: float | None
    """Unix seconds at which the connection expires, whatever `ttl` says; 0: never."""


def connection_token(user: Any, **options: Unpack[ConnectionTokenOptions]) -> str:
    """Sign a connection token with `token_hmac_secret_key` (HS256).

    Args:
        user: a Django user, whose primary key is the user ID; or a user ID as a string, an integer
            or a UUID. "" and AnonymousUser make an anonymous token.
        options: `ttl`, `info`, `channels`, `subs`, `meta` and `expire_at`, which
            `ConnectionTokenOptions` explains.

    Returns:
        The token in compact form.

    Raises:
        ValueError: `token_hmac_secret_key` is not set.
        TypeError: `user` is neither a user nor an ID, `info` has no JSON form, or `channels` is
            not a list of names.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    issued = _issued(options, ConnectionTokenOptions.__optional_keys__)
    return issue.connection_token(sources.current(), user_id(user), **issued)


def subscription_token(
    client: str, channel: str, **options: Unpack[SubscriptionTokenOptions]
) -> str:
    """Sign a token that lets one client subscribe to one private channel.

    Args:
        client: the client ID, as the client got it in its connect reply.
        channel: the name of the channel.
        options: see `SubscriptionTokenOptions`; `ttl` is an hour by default.

    Returns:
        The token in compact form.

    Raises:
        ValueError: the key is not set, or `override` names another option.
        TypeError: `info` or `data` has no JSON form, or the name is not a string.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    name = channel_rules.name(channel)
    issued = _issued(options, SubscriptionTokenOptions.__optional_keys__)
    return issue.subscription_token(sources.current(), client, name, **issued)


def user_subscription_token(
    user: Any, channel: str, **options: Unpack[SubscriptionTokenOptions]
) -> str:
    """Sign a token that lets every client of one user subscribe to one channel.

    It needs no client ID, so it can be made before the client connects. It opens private channels
    to all clients, and any other channel to clients of the second generation.

    Args:
        user: a Django user or a user ID, as for `connection_token`. "" and AnonymousUser are all
            anonymous clients together.
        channel: the name of the channel.
        options: see `SubscriptionTokenOptions`; `ttl` is an hour by default.

    Returns:
        The token in compact form.

    Raises:
        ValueError: the key is not set, or `override` names another option.
        TypeError: `user` is neither a user nor an ID, `info` or `data` has no JSON form, or the
            name is not a string.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    name = channel_rules.name(channel)
    issued = _issued(options, SubscriptionTokenOptions.__optional_keys__)
    return issue.user_subscription_token(sources.current(), user_id(user), name, **issued)


def _issued(options: Mapping[str, Any], known: frozenset[str]) -> Any:
    """Return options with their defaults, and with what the site gives as payloads."""
    if unknown := options.keys() - known:
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    values = {name: _payload(options[name]) for name in options.keys() & {"info", "data", "meta"}}
    return {"ttl": DEFAULT_TTL, **options, **values}


def _payload(info: object) -> Payload | None:
    return info if info is None or isinstance(info, Payload) else to_payload(info)


def observer_token(channel: str | Iterable[str], ttl: float = DEFAULT_TTL) -> str:
    """Sign a token with which an operator's browser observes one channel, or several.

    A client connects with it as with any other connection token. The service subscribes it to
    these channels, whatever their options allow, and it recovers where they do. Presence and
    counts do not show it, and there is no join. It may send ping, and refresh with another such
    token for the same channels; every other command is refused.

    The key is derived from SECRET_KEY, so the options of tokens do not matter. Give the token only
    to people who may see everything that is published in these channels.

    Args:
        channel: name of the channel, or several names.
        ttl: seconds until the token expires and the client must fetch a new one.

    Returns:
        The token in compact form.

    Raises:
        BadRequest: a name is empty or not ASCII.
        NamespaceNotFound: a name has a namespace that is not configured.
        TypeError: a name is not a string.
        ValueError: there are no names.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    names = [channel] if isinstance(channel, str) else list(channel)
    token = issue.observer_token(sources.observer_keys()[0], names, ttl=ttl)
    for name in names:
        channel_rules.check_channel(name, sources.current())
    return token


__all__ = [
    "ConnectToken",
    "ExpiredToken",
    "InvalidToken",
    "SubscribeToken",
    "Verifier",
    "connection_token",
    "observer_token",
    "subscription_token",
    "user_subscription_token",
]
