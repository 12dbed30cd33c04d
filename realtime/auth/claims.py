"""The claims of the three kinds of tokens: read and checked.

Clients of every generation may have tokens with the claims of either generation. What a claim means
does not depend on the client that brings it.

docs/tokens.md; docs/protocol.md, 3.2 and 3.7.
Beyond the spec: claim types and the meaning of `exp` and `nbf` follow Centrifugo 2.8.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from realtime import payload
from realtime.config.channel_options import Overrides
from realtime.config.expressions import compiled
from realtime.config.token_options import TokenOptions
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


ANYBODY = TokenOptions("token")
"""Options that accept tokens of every issuer, for every audience."""


class TokenSubscription(Struct, frozen=True, gc=False):
    """A server-side subscription in a connection token."""

    info: Payload | None = None
    """Channel info."""
    data: Payload | None = None
    """Goes to the client with the result of the subscription."""
    overrides: Overrides | None = None


class ConnectToken(Struct, frozen=True, gc=False):
    """The claims of a connection token."""

    user: str
    info: Payload | None = None
    channels: tuple[str, ...] = ()
    """Server-side subscriptions, those in `subs` included."""
    expires_at: float | None = None
    """When the connection expires, Unix seconds; None for never. May have passed: the token itself
    has not expired."""
    subs: Mapping[str, TokenSubscription] = {}
    """Channel → what the token says about the subscription, if it says anything."""
    meta: Payload | None = None
    """What hooks and proxies learn of the connection, and no client."""


class SubscribeToken(Struct, frozen=True, gc=False):
    """The claims of a subscription token. Whom it is for, `is_for` knows."""

    client: str
    channel: str
    info: Payload | None = None
    expires_at: float | None = None
    """When the subscription expires, Unix seconds; None for never. May have passed."""
    token_expires_at: float | None = None
    """When the token expires, Unix seconds."""
    user: str | None = None
    """None if the token does not name a user; "" for anonymous ones."""
    data: Payload | None = None
    """Goes to the client with the result of the subscription."""
    overrides: Overrides | None = None
    refreshed_until: float | None = None
    """When a subscription expires that is refreshed with this token: `eto` has no effect then."""
    is_nameless: bool = False
    """Whether the token has no claim of a user, not even one that is no user ID."""

    def is_for(self, client: str, user: str, *, absent_is_anonymous: bool) -> bool:
        """Return whether it is the token of this client, or of this user.

        Anonymous clients have no user ID in common, so a token that also names a client is for
        that client alone.

        Args:
            client: the client ID of the connection.
            user: the user ID of the connection; "" for an anonymous one.
            absent_is_anonymous: whether a token without a user is for anonymous clients.
        """
        named = "" if self.is_nameless and absent_is_anonymous else self.user
        of_user = named == user and (user != "" or self.client == "")
        return of_user or self.client == client != ""


class ObserverToken(Struct, frozen=True, gc=False):
    """The claims of an observer's token. `expires_at` in Unix seconds."""

    channels: tuple[str, ...]
    expires_at: float


class _Switch(Struct):
    value: bool


class _Overrides(Struct):
    presence: _Switch | None = None
    join_leave: _Switch | None = None
    force_push_join_leave: _Switch | None = None
    force_recovery: _Switch | None = None
    force_positioning: _Switch | None = None


class _Sub(Struct):
    info: Raw = _ABSENT
    b64info: str | None = None
    data: Raw = _ABSENT
    b64data: str | None = None
    override: _Overrides | None = None


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
    sub: Raw = _ABSENT
    channels: list[str] | None = None
    channel: Raw = _ABSENT
    expire_at: NumericDate = None
    subs: dict[str, _Sub | None] | None = None
    meta: Raw = _ABSENT


class _SubscribeClaims(_Claims):
    sub: Raw = _ABSENT
    client: str | None = None
    channel: str | None = None
    eto: bool | None = None
    expire_at: NumericDate = None
    data: Raw = _ABSENT
    b64data: str | None = None
    override: _Overrides | None = None


class _ObserverClaims(_Claims):
    channels: list[str] = []


C = TypeVar("C")

_decode_connect = msgspec.json.Decoder(_ConnectClaims).decode
_decode_observer = msgspec.json.Decoder(_ObserverClaims).decode
_decode_subscribe = msgspec.json.Decoder(_SubscribeClaims).decode
_decode_any = msgspec.json.Decoder(dict[str, Raw]).decode


def read_connect(claims: bytes, now: float, expected: TokenOptions = ANYBODY) -> ConnectToken:
    """Read the claims of a connection token. `now` is Unix seconds.

    Raises:
        InvalidToken: a claim has a wrong type, it is for another audience or of another issuer, or
            it is a subscription token. With its `sub`, or without as an anonymous user, it would
            open more than its channel.
        ExpiredToken: `exp` has passed, or `nbf` has not come yet.
    """
    decoded = _decode(_decode_connect, claims)
    if bytes(decoded.channel) not in (b"", b"null"):
        raise InvalidToken("a subscription token")
    _check_parties(decoded, expected)
    info = _payload("info", decoded.info, decoded.b64info)
    subs = {name: _subscription(sub) for name, sub in (decoded.subs or {}).items() if name}
    names = subs or dict.fromkeys(name for name in decoded.channels or () if name)
    expire_at = _number(decoded.expire_at)
    token_expires_at = _check_times(decoded, now)
    return ConnectToken(
        user=_user(_claim_of_user(decoded.sub, claims, expected)),
        info=info,
        channels=tuple(names),
        expires_at=_life(expire_at, token_expires_at),
        subs=subs,
        meta=None if bytes(decoded.meta) == b"null" else _payload("meta", decoded.meta, None),
    )


def read_subscribe(claims: bytes, now: float, expected: TokenOptions = ANYBODY) -> SubscribeToken:
    """Read the claims of a subscription token. `now` is Unix seconds.

    Raises:
        InvalidToken: a claim has a wrong type, or it is for another audience or of another issuer.
        ExpiredToken: `exp` has passed, or `nbf` has not come yet.
    """
    decoded = _decode(_decode_subscribe, claims)
    _check_parties(decoded, expected)
    info = _payload("info", decoded.info, decoded.b64info)
    data = _payload("data", decoded.data, decoded.b64data)
    expire_at = _number(decoded.expire_at)
    token_expires_at = _check_times(decoded, now)
    claim_of_user = _claim_of_user(decoded.sub, claims, expected)
    return SubscribeToken(
        client=decoded.client or "",
        channel=decoded.channel or "",
        info=info,
        expires_at=_life(expire_at, None if decoded.eto else token_expires_at),
        token_expires_at=token_expires_at,
        user=_text(claim_of_user),
        data=data,
        overrides=_overrides(decoded.override),
        refreshed_until=_life(expire_at, token_expires_at),
        is_nameless=_is_absent(claim_of_user),
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


def _check_parties(claims: _Claims, expected: TokenOptions) -> None:
    """Check audience and issuer of a token.

    Raises:
        InvalidToken: they are others than expected.
    """
    audiences = claims.aud if isinstance(claims.aud, list) else [claims.aud or ""]
    if expected.audience and expected.audience not in audiences:
        raise InvalidToken("for another audience")
    if expected.audience_regex and not any(
        compiled(expected.audience_regex).search(audience) for audience in audiences
    ):
        raise InvalidToken("for another audience")
    issuer = claims.iss or ""
    if expected.issuer and expected.issuer != issuer:
        raise InvalidToken("of another issuer")
    if expected.issuer_regex and compiled(expected.issuer_regex).search(issuer) is None:
        raise InvalidToken("of another issuer")


def _life(expire_at: float | None, token_expires_at: float | None) -> float | None:
    """Return when what a token opens expires: `expire_at` counts more than the token's own expiry.

    Args:
        expire_at: the claim; 0 or less for never, None if there is none.
        token_expires_at: the claim `exp`, None if there is none.
    """
    if expire_at is None:
        return token_expires_at
    return expire_at if expire_at > 0 else None


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


def _claim_of_user(sub: Raw, claims: bytes, expected: TokenOptions) -> Raw:
    """Return the claim that holds the user ID."""
    if not expected.user_id_claim:
        return sub
    return _decode(_decode_any, claims).get(expected.user_id_claim, _ABSENT)


def _user(claim: Raw) -> str:
    """Return the user ID of a connection token; "" for an anonymous user.

    Raises:
        InvalidToken: it is not a string.
    """
    if _is_absent(claim):
        return ""
    if (user := _text(claim)) is None:
        raise InvalidToken("claims have the wrong types")
    return user


def _is_absent(claim: Raw) -> bool:
    return bytes(claim) in (b"", b"null")


def _text(claim: Raw) -> str | None:
    """Return a claim that others than strings do not make invalid; None if it is not a string."""
    try:
        return msgspec.json.decode(bytes(claim), type=str) if bytes(claim) else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _subscription(claims: _Sub | None) -> TokenSubscription:
    if claims is None:
        return TokenSubscription()
    return TokenSubscription(
        info=_payload("info", claims.info, claims.b64info),
        data=_payload("data", claims.data, claims.b64data),
        overrides=_overrides(claims.override),
    )


def _overrides(claims: _Overrides | None) -> Overrides | None:
    if claims is None:
        return None
    switches: list[_Switch | None] = [getattr(claims, name) for name in Overrides._fields]
    found = Overrides(*(None if switch is None else switch.value for switch in switches))
    return None if found == Overrides() else found


def _payload(name: str, text: Raw, base64_text: str | None) -> Payload | None:
    """Return a claim that is any JSON, or its twin in base64, which counts more.

    Raises:
        InvalidToken: it is not base64, or not JSON.
    """
    raw = bytes(text)
    if base64_text:
        try:
            raw = base64.b64decode(base64_text, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidToken(f"b64{name} is not base64") from None
    if not raw:
        return None
    try:
        return payload.check(raw)
    except ValueError:
        raise InvalidToken(f"{name} is not JSON") from None
