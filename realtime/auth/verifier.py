"""Verify tokens: the compact form, the signature, the claims.

Spec: Authentication, Client connection.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec
from jwt.algorithms import get_default_algorithms
from msgspec import Struct

from realtime.auth import claims
from realtime.auth.claims import OBSERVER, ConnectToken, InvalidToken, ObserverToken, SubscribeToken
from realtime.auth.keys import RSA_ALGORITHMS, Key, KeySet, configured_keys
from realtime.config.options import Config

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


class _Header(Struct, frozen=True, gc=False):
    alg: str = ""
    kid: str | None = None
    crit: msgspec.Raw = msgspec.Raw(b"")


_decode_header = msgspec.json.Decoder(_Header).decode


class Verifier:
    """Verifies tokens with the keys of one configuration. Belongs to one event loop.

    Raises:
        InvalidKey: (constructor) an option holds something else than its kind of key.
    """

    def __init__(self, config: Config, observer_keys: Sequence[bytes] = ()) -> None:
        """`observer_keys`: any of them verifies tokens of observers, and nothing else."""
        hs256 = get_default_algorithms()["HS256"]
        self._observer_keys = [Key(hs256, key) for key in observer_keys]
        self._keys: dict[str, Key] = {}
        self._key_set: KeySet | None = None
        if config.token_jwks_public_endpoint:
            self._key_set = KeySet(config.token_jwks_public_endpoint)
            self._rsa = {name: get_default_algorithms()[name] for name in RSA_ALGORITHMS}
        else:
            self._keys = configured_keys(config)

    async def connect(self, token: str, now: float) -> ConnectToken:
        """Verify a connection token. `now` is Unix seconds.

        Raises:
            InvalidToken, ExpiredToken, KeysUnavailable
        """
        return claims.read_connect(await self._verified(token), now)

    async def subscribe(self, token: str, now: float) -> SubscribeToken:
        """Verify a subscription token. `now` is Unix seconds.

        Raises:
            InvalidToken, ExpiredToken, KeysUnavailable
        """
        return claims.read_subscribe(await self._verified(token), now)

    def is_for_observer(self, token: str) -> bool:
        """Whether a token says that it is an observer's; not whether that is true."""
        parts = _COMPACT.fullmatch(token)
        try:
            return parts is not None and _read_header(parts[1]).kid == OBSERVER
        except InvalidToken:
            return False

    def observer(self, token: str, now: float) -> ObserverToken:
        """Verify a token of an observer. `now` is Unix seconds.

        Raises:
            InvalidToken, ExpiredToken
        """
        parts = _COMPACT.fullmatch(token)
        if parts is None:
            raise InvalidToken("not in compact form")
        header = _read_header(parts[1])
        if (header.alg, header.kid) != ("HS256", OBSERVER) or bytes(header.crit):
            raise InvalidToken("not an observer's token")
        message, signature = _signed(token, parts)
        if not any(key.verifies(message, signature) for key in self._observer_keys):
            raise InvalidToken("wrong signature")
        return claims.read_observer(_decode(parts[2]), now)

    def close(self) -> None:
        """Release what fetching keys needs."""
        if self._key_set is not None:
            self._key_set.close()

    async def _verified(self, token: str) -> bytes:
        """The claims of a token whose signature is right, still encoded."""
        parts = _COMPACT.fullmatch(token)
        if parts is None:
            raise InvalidToken("not in compact form")
        header = _read_header(parts[1])
        key = await self._key(header)
        message, signature = _signed(token, parts)
        if not key.verifies(message, signature):
            raise InvalidToken("wrong signature")
        return _decode(parts[2])

    async def _key(self, header: _Header) -> Key:
        if bytes(header.crit):
            raise InvalidToken("critical extensions are not supported")
        if self._key_set is None:
            try:
                return self._keys[header.alg]
            except KeyError:
                raise InvalidToken("no key for this algorithm") from None
        if header.alg not in self._rsa or not header.kid:
            raise InvalidToken("not an RSA token with a key ID")
        public = await self._key_set.key(header.kid)
        if public is None:
            raise InvalidToken("unknown key ID")
        return Key(self._rsa[header.alg], public)


def _signed(token: str, parts: re.Match[str]) -> tuple[bytes, bytes]:
    """What is signed, and the signature."""
    return token[: parts.start(3) - 1].encode(), _decode(parts[3])


@lru_cache(maxsize=256)
def _read_header(encoded: str) -> _Header:
    """Decode a header. Cached: an application's tokens share a handful of headers."""
    try:
        return _decode_header(_decode(encoded))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidToken("malformed header") from None


def _decode(segment: str) -> bytes:
    """Decode unpadded base64url."""
    try:
        return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except binascii.Error:
        raise InvalidToken("malformed base64url") from None
