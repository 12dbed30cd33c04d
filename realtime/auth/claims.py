"""The claims of the three kinds of tokens: read and checked.

docs/protocol.md, 3.2 and 3.7.
Beyond the spec: claim types and the meaning of `exp` and `nbf` follow Centrifugo 2.8.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.payload import Payload

NumericDate: TypeAlias = float | int | str | None
"""Unix seconds; a string must hold a number, null means that the claim is absent."""

OBSERVER = "realtime-observer"
"""The audience of observers' tokens, and the ID of their key."""

_ABSENT = Raw(b"")


class InvalidToken(ValueError):
    """Malformed, signed wrongly, or with claims of wrong types. The text never holds the token."""


class ExpiredToken(ValueError):
    """`exp` has passed, or `nbf` has not come yet."""


class ConnectToken(Struct, frozen=True, gc=False):
    """The claims of a connection token. `expires_at` in Unix seconds, None for never."""

    user: str
    info: Payload | None = None
    channels: tuple[str, ...] = ()
    expires_at: float | None = None


class SubscribeToken(Struct, frozen=True, gc=False):
    """The claims of a subscription token."""

    client: str
    channel: str
    info: Payload | None = None
    expires_at: float | None = None
    """When the subscription expires, Unix seconds; None for never."""
    token_expires_at: float | None = None
    """When the token expires, Unix seconds. With the claim `eto` the subscription does not."""


class ObserverToken(Struct, frozen=True, gc=False):
    """The claims of an observer's token. `expires_at` in Unix seconds."""

    channels: tuple[str, ...]
    expires_at: float


class _Claims(Struct):
    exp: NumericDate = None
    nbf: NumericDate = None
    iat: NumericDate = None
    iss: str | None = None
    jti: str | None = None
    aud: str | list[str] | None = None
    info: Raw = _ABSENT
    b64info: str | None = None


class _ConnectClaims(_Claims):
    sub: str | None = None
    channels: list[str] | None = None
    channel: Raw = _ABSENT


class _SubscribeClaims(_Claims):
    sub: Raw = _ABSENT
    client: str | None = None
    channel: str | None = None
    eto: bool | None = None


class _ObserverClaims(_Claims):
    channels: list[str] = []


C = TypeVar("C", bound=_Claims)

_decode_connect = msgspec.json.Decoder(_ConnectClaims).decode
_decode_observer = msgspec.json.Decoder(_ObserverClaims).decode
_decode_subscribe = msgspec.json.Decoder(_SubscribeClaims).decode


def read_connect(claims: bytes, now: float) -> ConnectToken:
    """Read the claims of a connection token. `now` is Unix seconds.

    Raises:
        InvalidToken: a claim has a wrong type, or it is a subscription token. With its `sub`, or
            without as an anonymous user, it would open more than its channel.
        ExpiredToken: `exp` has passed, or `nbf` has not come yet.
    """
    decoded = _decode(_decode_connect, claims)
    if bytes(decoded.channel) not in (b"", b"null"):
        raise InvalidToken("a subscription token")
    expires_at = _check_times(decoded, now)
    return ConnectToken(
        user=decoded.sub or "",
        info=_info(decoded),
        channels=tuple(decoded.channels or ()),
        expires_at=expires_at,
    )


def read_subscribe(claims: bytes, now: float) -> SubscribeToken:
    """Read the claims of a subscription token. `now` is Unix seconds.

    Raises:
        InvalidToken: a claim has a wrong type.
        ExpiredToken: `exp` has passed, or `nbf` has not come yet.
    """
    decoded = _decode(_decode_subscribe, claims)
    expires_at = _check_times(decoded, now)
    return SubscribeToken(
        client=decoded.client or "",
        channel=decoded.channel or "",
        info=_info(decoded),
        expires_at=None if decoded.eto else expires_at,
        token_expires_at=expires_at,
    )


def read_observer(claims: bytes, now: float) -> ObserverToken:
    """Read the claims of an observer's token, which always expires. `now` is Unix seconds.

    Raises:
        InvalidToken: a claim has a wrong type, or audience, expiry or channels are missing.
        ExpiredToken: `exp` has passed, or `nbf` has not come yet.
    """
    decoded = _decode(_decode_observer, claims)
    expires_at = _check_times(decoded, now)
    if decoded.aud != OBSERVER or expires_at is None or not decoded.channels:
        raise InvalidToken("not an observer's token")
    return ObserverToken(tuple(decoded.channels), expires_at)


def _decode(decode: Callable[[bytes], C], claims: bytes) -> C:
    try:
        return decode(claims)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidToken("claims have the wrong types") from None


def _check_times(claims: _Claims, now: float) -> float | None:
    expires_at = _number(claims.exp)
    not_before = _number(claims.nbf)
    _number(claims.iat)
    if expires_at is not None and now >= expires_at:
        raise ExpiredToken("exp has passed")
    if not_before is not None and now <= not_before:
        raise ExpiredToken("nbf has not come")
    return expires_at


def _number(date: NumericDate) -> float | None:
    if date is None:
        return None
    try:
        number = float(date)
    except (ValueError, OverflowError):
        raise InvalidToken("a time claim is not a number") from None
    if not math.isfinite(number):
        raise InvalidToken("a time claim is not a number")
    return number


def _info(claims: _Claims) -> Payload | None:
    raw = bytes(claims.info)
    if claims.b64info:
        try:
            raw = base64.b64decode(claims.b64info, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidToken("b64info is not base64") from None
    if not raw:
        return None
    try:
        return payload.check(raw)
    except ValueError:
        raise InvalidToken("info is not JSON") from None
