"""Make tokens with a given configuration, which live for ever unless `ttl` says otherwise.

`tokens.site` does so with the configuration in force, and says what the arguments mean.

Spec: Authentication, Client connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import jwt
import msgspec

from realtime import payload
from realtime.auth.claims import OBSERVER
from realtime.channel_rules import names as channel_names
from realtime.config.options import Config
from realtime.payload import Payload

_encode = jwt.PyJWS().encode


def connection_token(
    config: Config,
    user: str,
    *,
    ttl: float | None = None,
    info: object = None,
    channels: Iterable[str] = (),
) -> str:
    """As `tokens.site.connection_token`, for a user ID."""
    claims: dict[str, Any] = {"sub": user}
    if names := channel_names(channels):
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
    """As `tokens.site.subscription_token`."""
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
    names = channel_names(channels)
    if not names:
        raise ValueError("name at least one channel")
    claims = {"aud": OBSERVER, "channels": names, "exp": int(time.time() + ttl)}
    return _encode(msgspec.json.encode(claims), key, algorithm="HS256", headers={"kid": OBSERVER})


def _sign(config: Config, claims: dict[str, Any], ttl: float | None, info: object) -> str:
    if not config.token_hmac_secret_key:
        raise ValueError("set token_hmac_secret_key to make tokens")
    if ttl is not None:
        claims["exp"] = int(time.time() + ttl)
    if info is not None:
        checked = info if isinstance(info, Payload) else payload.from_object(info)
        claims["info"] = msgspec.Raw(checked.json)
    return _encode(msgspec.json.encode(claims), config.token_hmac_secret_key, algorithm="HS256")
