"""Make tokens as the site does: with the configuration in force, for its users.

Spec: Authentication, Client connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from realtime import channel_rules
from realtime.auth import issue
from realtime.auth.claims import ConnectToken, ExpiredToken, InvalidToken, SubscribeToken
from realtime.auth.verifier import Verifier
from realtime.config import sources
from realtime.hooks.answers import user_id

DEFAULT_TTL = 3600.0
"""Seconds. A token cannot be taken back: whoever lost a right keeps it this long at most."""


def connection_token(
    user: Any,
    *,
    ttl: float | None = DEFAULT_TTL,
    info: object = None,
    channels: Iterable[str] = (),
) -> str:
    """A connection token, signed with `token_hmac_secret_key` (HS256).

    Args:
        user: a Django user, whose primary key is the user ID, or a user ID: text, a whole
            number or a UUID; "" and AnonymousUser make an anonymous token.
        ttl: seconds until it expires, and the client has to bring a new one; None for never.
        info: JSON-serialisable connection info, shown to others as `conn_info`.
        channels: server-side subscriptions.

    Raises:
        ValueError: no `token_hmac_secret_key` is set.
        TypeError: `user` is no user, the info has no JSON form, or the channels are no list
            of names.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    return issue.connection_token(
        sources.current(), user_id(user), ttl=ttl, info=info, channels=channels
    )


def subscription_token(
    client: str,
    channel: str,
    *,
    ttl: float | None = DEFAULT_TTL,
    info: object = None,
    keep_subscription: bool = False,
) -> str:
    """A token that lets one connection subscribe to one private channel.

    Args:
        client: connection ID, as the client got it in its connect reply.
        ttl: seconds until token and subscription expire; None for never.
        info: JSON-serialisable channel info, shown to others as `chan_info`.
        keep_subscription: only the token expires, not the subscription (claim `eto`).

    Raises:
        ValueError: no `token_hmac_secret_key` is set.
        TypeError: the info has no JSON form.
        InvalidOptions: the options have mistakes; the system checks list them too.
    """
    return issue.subscription_token(
        sources.current(),
        client,
        channel,
        ttl=ttl,
        info=info,
        keep_subscription=keep_subscription,
    )


def observer_token(channel: str | Iterable[str], ttl: float = DEFAULT_TTL) -> str:
    """A token with which an operator's browser watches a channel, or several.

    A client connects with it as with any other. It is subscribed to these channels, whatever
    their options allow, and recovers where they do; it is not present there, nobody is told
    that it came, and it can do nothing but ping, and refresh with another such token for the
    same channels. Any configuration of tokens accepts it: its key is made of SECRET_KEY. Give
    it to those alone who may see all that is published there.

    Args:
        channel: name of the channel, or several names.
        ttl: seconds until it expires, and the client has to bring a new one.

    Raises:
        Error: a name is no channel's: `BadRequest`, `NamespaceNotFound`.
        TypeError: a name is no text.
        ValueError: there is none.
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
]
