"""Verify tokens: the compact form, the signature, the claims.

PyJWT reads headers and checks signatures. The claims stay bytes, because `info` is raw JSON.

docs/protocol.md, 3.2 and 3.7.
"""

from __future__ import annotations

import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from jwt import PyJWS
from jwt.algorithms import get_default_algorithms
from jwt.exceptions import PyJWTError

from realtime.auth import claims
from realtime.auth.claims import (
    OBSERVER,
    ConnectToken,
    InvalidToken,
    ObserverToken,
    SubscribeToken,
)
from realtime.auth.keys import RSA_ALGORITHMS, Key, KeySet, configured_keys, previous_keys
from realtime.config.options import Config
from realtime.config.token_options import TokenOptions

# PyJWT takes padding too, and its older versions any character between those of the alphabet.
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_decode_complete = PyJWS().decode_complete

HEADER_MAX_BYTES = 2048
"""Limit for the header of a token, decoded. Ours have 50 bytes, one with a key ID 200."""
TOKEN_MAX_BYTES = 64 * 1024
"""Limit for a token, encoded."""

_HEADER_MAX_CHARACTERS = (HEADER_MAX_BYTES * 4 + 2) // 3
_HEADERS = 32
"""How many headers are remembered: the tokens of one key have the same one."""


class _Header(NamedTuple):
    """What a token says of its signature."""

    algorithm: str
    key_id: str
    """Each "" if the header does not name one."""


class _Signed(NamedTuple):
    """The parts of a token. None of them is verified."""

    header: _Header
    message: bytes
    """What the signature signs."""
    signature: bytes
    claims: bytes


class _Signers:
    """Who may sign one kind of tokens: their keys. Belongs to one event loop."""

    def __init__(self, options: TokenOptions) -> None:
        """
        Raises:
            InvalidKey: an option holds something else than its kind of key.
        """
        self._keys: dict[str, Key] = {}
        self._previous_keys: dict[str, Key] = {}
        self._previous_keys_valid_until = options.hmac_previous_secret_key_valid_until or math.inf
        self._key_set: KeySet | None = None
        if options.jwks_public_endpoint:
            name = options.name_of("jwks_public_endpoint")
            self._key_set = KeySet(options.jwks_public_endpoint, name)
            self._rsa = {name: get_default_algorithms()[name] for name in RSA_ALGORITHMS}
        else:
            self._keys = configured_keys(options)
            self._previous_keys = previous_keys(options)

    async def verified(self, signed: _Signed, now: float) -> bytes:
        """Return the claims of a token whose signature is right, still encoded.

        Raises:
            InvalidToken: none of the keys signed it.
            KeysUnavailable: the key set cannot be fetched.
        """
        for key in await self._possible_keys(signed, now):
            if key.verifies(signed.message, signed.signature):
                return signed.claims
        raise InvalidToken("wrong signature")

    def close(self) -> None:
        """Release the thread that fetches keys."""
        if self._key_set is not None:
            self._key_set.close()

    async def _possible_keys(self, signed: _Signed, now: float) -> list[Key]:
        """Return the keys with which a token may be signed; at least one."""
        algorithm, key_id = signed.header
        if self._key_set is None:
            keys = [self._keys[algorithm]] if algorithm in self._keys else []
            if algorithm in self._previous_keys and now < self._previous_keys_valid_until:
                keys.append(self._previous_keys[algorithm])
            if not keys:
                raise InvalidToken("no key for this algorithm")
            return keys
        if algorithm not in self._rsa or not key_id:
            raise InvalidToken("not an RSA token with a key ID")
        public = await self._key_set.key(key_id)
        if public is None:
            raise InvalidToken("unknown key ID")
        return [Key(self._rsa[algorithm], public)]


class Verifier:
    """Verifies tokens with the keys of one configuration. Belongs to one event loop."""

    def __init__(self, config: Config, observer_keys: Sequence[bytes] = ()) -> None:
        """
        Args:
            config: the options.
            observer_keys: each of them verifies tokens of observers, and no other tokens.

        Raises:
            InvalidKey: an option holds something else than its kind of key.
        """
        hs256 = get_default_algorithms()["HS256"]
        self._observer_keys = [Key(hs256, key) for key in observer_keys]
        self._of_connection = config.connection_tokens
        self._connection = _Signers(config.connection_tokens)
        self._subscription = self._connection
        if config.subscription_tokens != config.connection_tokens:
            self._subscription = _Signers(config.subscription_tokens)
        self._of_subscription = config.subscription_tokens

    async def identify(self, token: str, now: float) -> ConnectToken | ObserverToken:
        """Verify the token of a connect command.

        Args:
            token: in compact form.
            now: Unix seconds.

        Returns:
            The claims of an observer's token if the key ID says that it is one.

        Raises:
            InvalidToken: it is malformed, its signature is wrong, or a claim has a wrong type.
            ExpiredToken: `exp` has passed, or `nbf` has not come yet.
            KeysUnavailable: the key set cannot be fetched.
        """
        signed = _parse(token)
        if signed.header.key_id == OBSERVER:
            return claims.read_observer(self._verified_for_observer(signed), now)
        verified = await self._connection.verified(signed, now)
        return claims.read_connect(verified, now, self._of_connection)

    async def connect(self, token: str, now: float) -> ConnectToken:
        """Verify a connection token, and not one of an observer.

        Arguments and errors are those of `identify`.
        """
        verified = await self._connection.verified(_parse(token), now)
        return claims.read_connect(verified, now, self._of_connection)

    async def subscribe(self, token: str, now: float) -> SubscribeToken:
        """Verify a subscription token.

        Arguments and errors are those of `identify`.
        """
        verified = await self._subscription.verified(_parse(token), now)
        return claims.read_subscribe(verified, now, self._of_subscription)

    def close(self) -> None:
        """Release the threads that fetch keys."""
        self._connection.close()
        self._subscription.close()

    def _verified_for_observer(self, signed: _Signed) -> bytes:
        """Return the claims of a token that an observer key signed."""
        if signed.header.algorithm != "HS256":
            raise InvalidToken("not an observer's token")
        if not any(key.verifies(signed.message, signed.signature) for key in self._observer_keys):
            raise InvalidToken("wrong signature")
        return signed.claims


def claims_of(token: str) -> bytes:
    """Return the claims of a token, which is not verified. Only for people to read.

    Raises:
        InvalidToken: it cannot be taken apart.
    """
    return _parse(token).claims


def _parse(token: str) -> _Signed:
    """Take a token apart, without verifying it.

    Raises:
        InvalidToken: it is too large, it is not in compact form, its header is malformed, or it has
            an extension that the verifier must understand.
    """
    if len(token) > TOKEN_MAX_BYTES or token.find(".") > _HEADER_MAX_CHARACTERS:
        raise InvalidToken("too large")
    if _COMPACT.fullmatch(token) is None:
        raise InvalidToken("not in compact form")
    header, payload, signature = token.split(".")
    return _Signed(
        _header(header),
        token.rpartition(".")[0].encode(),
        _decoded(signature),
        _decoded(payload),
    )


@lru_cache(_HEADERS)  # PyJWT looks at each character of a token in Python
def _header(segment: str) -> _Header:
    """Read a header in compact form.

    Raises:
        InvalidToken: it is malformed, or has an extension that the verifier must understand.
    """
    try:
        parts = _decode_complete(f"{segment}.AA.AA", options={"verify_signature": False})
    except (PyJWTError, RecursionError):
        raise InvalidToken("malformed header") from None
    header = parts["header"]
    if "crit" in header:
        raise InvalidToken("critical extensions are not supported")
    return _Header(_text(header.get("alg")), _text(header.get("kid")))


def _decoded(segment: str) -> bytes:
    """Decode a segment of characters of base64url, without padding.

    Raises:
        InvalidToken: its length or its last character is one that no encoder writes.
    """
    try:
        decoded = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        raise InvalidToken("malformed base64url") from None
    if urlsafe_b64encode(decoded).rstrip(b"=") != segment.encode():
        raise InvalidToken("malformed base64url")
    return decoded


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
