"""Sign tokens with a given configuration. Without `ttl` they never expire.

`realtime.tokens` does so with the configuration in force, and documents the arguments.

docs/protocol.md, 3.2 and 3.7.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

import jwt
import msgspec

from realtime import payload
from realtime.auth.claims import OBSERVER
from realtime.channel_rules import names as channel_names
from realtime.config.channel_options import Overrides
from realtime.config.expressions import compiled
from realtime.config.options import Config
from realtime.config.token_options import TokenOptions
from realtime.payload import Payload
from realtime.tracing.recording import recorder

_encode = jwt.PyJWS().encode


def connection_token(
    config: Config,
    user: str,
    *,
    ttl: float | None = None,
    info: object = None,
    channels: Iterable[str] = (),
    subs: Mapping[str, object] | None = None,
    meta: object = None,
    expire_at: float | None = None,
) -> str:
    """Sign a connection token for a user ID. See `realtime.tokens.connection_token`."""
    options = config.connection_tokens
    claims: dict[str, Any] = {options.user_id_claim or "sub": user}
    if meta is not None:
        claims["meta"] = _raw(meta)
    if expire_at is not None:
        claims["expire_at"] = int(expire_at)
    names = channel_names(channels)
    if subs:
        described = {name: {} for name in names} | {
            name: subs[name] for name in channel_names(list(subs))
        }
        claims["subs"] = msgspec.Raw(payload.from_object(described).json)
    elif names:
        claims["channels"] = names
    return _sign(options, claims, ttl, info)


class SubscriptionTokenOptions(TypedDict, total=False):
    """Options of subscription tokens."""

    ttl: float | None
    """Seconds until token and subscription expire; None for never. The functions of
    `realtime.tokens` take an hour by default."""
    info: object
    """JSON-serialisable channel info, which others see as `chan_info`."""
    data: object
    """JSON-serialisable data that clients of the second generation get when they subscribe."""
    override: Mapping[str, bool] | None
    """Channel options that are others for this subscription: join_leave, force_push_join_leave,
    force_recovery, force_positioning → True or False."""
    expire_at: float | None
    """Unix seconds at which the subscription expires, whatever `ttl` says; 0: never."""
    keep_subscription: bool
    """Only the token expires, not the subscription."""


def subscription_token(
    config: Config, client: str, channel: str, **options: Unpack[SubscriptionTokenOptions]
) -> str:
    """Sign a subscription token. See `realtime.tokens.subscription_token`."""
    kept = {"eto": True} if options.get("keep_subscription") else {}
    return _subscription_token(config, {"client": client, **kept}, channel, options)


def user_subscription_token(
    config: Config, user: str, channel: str, **options: Unpack[SubscriptionTokenOptions]
) -> str:
    """Sign a subscription token for a user ID. See `realtime.tokens.user_subscription_token`."""
    if options.get("keep_subscription"):
        options["expire_at"] = 0
    claim = config.subscription_tokens.user_id_claim or "sub"
    return _subscription_token(config, {claim: user}, channel, options)


def _subscription_token(
    config: Config, claims: dict[str, Any], channel: str, options: SubscriptionTokenOptions
) -> str:
    claims["channel"] = channel
    if (data := options.get("data")) is not None:
        claims["data"] = _raw(data)
    if override := options.get("override"):
        if unknown := override.keys() - set(Overrides._fields):
            raise ValueError(f"{', '.join(sorted(unknown))} cannot be overridden")
        claims["override"] = {name: {"value": bool(value)} for name, value in override.items()}
    if (expire_at := options.get("expire_at")) is not None:
        claims["expire_at"] = int(expire_at)
    return _sign(config.subscription_tokens, claims, options.get("ttl"), options.get("info"))


def unnamed_party(options: TokenOptions) -> str:
    """Return what tokens signed here do not name, though the service wants it.

    Returns:
        "audience", "issuer", or "" if nothing is missing.
    """
    for party in ("audience", "issuer"):
        wanted: str = getattr(options, f"{party}_regex")
        if wanted and compiled(wanted).search(getattr(options, party)) is None:
            return party
    return ""


def observer_token(key: bytes, channels: Iterable[str], *, ttl: float) -> str:
    """Sign a token of an observer.

    Args:
        key: signs the token.
        channels: names of the channels that the observer receives.
        ttl: seconds until the token expires.

    Raises:
        TypeError: `channels` is not a list of names.
        ValueError: `channels` is empty.
    """
    names = channel_names(channels)
    if not names:
        raise ValueError("name at least one channel")
    claims = {"aud": OBSERVER, "channels": names, "exp": int(time.time() + ttl)}
    return _encoded(claims, key, {"kid": OBSERVER})


def _sign(options: TokenOptions, claims: dict[str, Any], ttl: float | None, info: object) -> str:
    if not options.hmac_secret_key:
        raise ValueError(f"set {options.name_of('hmac_secret_key')} to make tokens")
    if ttl is not None:
        claims["exp"] = int(time.time() + ttl)
    if info is not None:
        claims["info"] = _raw(info)
    if options.audience:
        claims["aud"] = options.audience
    if options.issuer:
        claims["iss"] = options.issuer
    return _encoded(claims, options.hmac_secret_key)


def _encoded(
    claims: dict[str, Any], key: str | bytes, headers: dict[str, Any] | None = None
) -> str:
    if (recording := recorder.get()) is not None:
        recording.token(claims)
    return _encode(msgspec.json.encode(claims), key, algorithm="HS256", headers=headers)


def _raw(value: object) -> msgspec.Raw:
    checked = value if isinstance(value, Payload) else payload.from_object(value)
    return msgspec.Raw(checked.json)
