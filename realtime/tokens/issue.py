"""Make tokens with a given configuration; `tokens.site` does so with the one in force.

Spec: Authentication, Client connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import jwt
import msgspec

from realtime import payload
from realtime.options import Config
from realtime.payload import Payload
from realtime.tokens.claims import OBSERVER

_encode = jwt.PyJWS().encode


def connection_token(
    config: Config,
    user: str,
    *,
    ttl: float | None = None,
    info: object = None,
    channels: Iterable[str] = (),
) -> str:
    """A connection token for a user ID, signed with `token_hmac_secret_key` (HS256).

    Args:
        user: user ID; "" makes an anonymous token.
        ttl: seconds until it expires; None for never.
        info: JSON-serialisable connection info, shown to others as `conn_info`.
        channels: server-side subscriptions.

    Raises:
        ValueError: no `token_hmac_secret_key` is set.
        TypeError: the info has no JSON form, or the channels are no list of names.
    """
    claims: dict[str, Any] = {"sub": user}
    if names := _names(channels):
        claims["channels"] = names
    return _sign(config, claims, ttl, info)


def subscription_token(
    config: Config,
    client: str,
    channel: str,
    *,
    ttl: float | None = None,
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
    """
    claims: dict[str, Any] = {"client": client, "channel": channel}
    if keep_subscription:
        claims["eto"] = True
    return _sign(config, claims, ttl, info)


def observer_token(key: bytes, channels: Iterable[str], *, ttl: float) -> str:
    """A token with which an operator watches channels.

    Args:
        key: signs it.
        ttl: seconds until it expires.

    Raises:
        TypeError: the channels are no list of names.
        ValueError: there are none.
    """
    names = _names(channels)
    if not names:
        raise ValueError("name at least one channel")
    claims = {"aud": OBSERVER, "channels": names, "exp": int(time.time() + ttl)}
    return _encode(msgspec.json.encode(claims), key, algorithm="HS256", headers={"kid": OBSERVER})


def _names(channels: Iterable[str]) -> list[str]:
    if isinstance(channels, str):
        raise TypeError("channels is a list of names, not one name")
    names = list(channels)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a channel has a name, not {type(name).__name__}")
    return names


def _sign(config: Config, claims: dict[str, Any], ttl: float | None, info: object) -> str:
    if not config.token_hmac_secret_key:
        raise ValueError("set token_hmac_secret_key to make tokens")
    if ttl is not None:
        claims["exp"] = int(time.time() + ttl)
    if info is not None:
        checked = info if isinstance(info, Payload) else payload.from_object(info)
        claims["info"] = msgspec.Raw(checked.json)
    return _encode(msgspec.json.encode(claims), config.token_hmac_secret_key, algorithm="HS256")
