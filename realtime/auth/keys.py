"""Keys: which key verifies a token, by the algorithm that its header names.

Keys come from the options. With `token_jwks_public_endpoint` they come from that endpoint alone.
PyJWT checks signatures, and compares them in constant time.

docs/protocol.md, 3.2.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWKClient, PyJWKSet
from jwt.algorithms import Algorithm, get_default_algorithms
from jwt.exceptions import InvalidKeyError, PyJWTError

from realtime.config.token_options import TokenOptions

logger = logging.getLogger("realtime.tokens")

HMAC_ALGORITHMS = ("HS256", "HS384", "HS512")
RSA_ALGORITHMS = ("RS256", "RS384", "RS512")
ECDSA_ALGORITHMS = ("ES256", "ES384", "ES512")

KEY_SET_LIFETIME = 3600.0
"""Seconds for which a key set is used after it was fetched."""
KEY_SET_TIMEOUT = 1.0
"""Seconds for one attempt to fetch a key set."""
KEY_SET_ATTEMPTS = 2
KEY_SET_COOLDOWN = 10.0
"""Seconds between fetches, so that tokens with unknown key IDs cannot flood the endpoint."""

MIN_SECRET_BYTES = 32
"""The size of a SHA-256 digest (RFC 7518, 3.2)."""


class InvalidKey(ValueError):
    """An option holds something else than its kind of key. The text never holds the key."""


class KeysUnavailable(Exception):
    """The key set cannot be fetched, so the token is neither valid nor invalid."""

    def __init__(self) -> None:
        super().__init__("the key set cannot be fetched")


class Key(NamedTuple):
    """An algorithm and a key that is prepared for it."""

    algorithm: Algorithm
    key: Any

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Return whether the signature is this key's signature of the message."""
        return self.algorithm.verify(message, self.key, signature)


def configured_keys(options: TokenOptions) -> dict[str, Key]:
    """Return the keys in the options, by name of algorithm.

    Raises:
        InvalidKey: an option holds something else than its kind of key.
    """
    algorithms = get_default_algorithms()
    keys = _hmac_keys(options.name_of("hmac_secret_key"), options.hmac_secret_key)
    for kind, (member, names, key_type) in _PUBLIC_KEYS.items():
        if pem := getattr(options, member):
            public = _public_key(options.name_of(member), pem)
            if not isinstance(public, key_type):
                raise InvalidKey(f"{options.name_of(member)} is not an {kind} key")
            for name in names:
                try:
                    keys[name] = Key(algorithms[name], algorithms[name].prepare_key(public))
                except InvalidKeyError:
                    if kind != "ECDSA":  # each algorithm of those belongs to one curve
                        raise
    return keys


_PUBLIC_KEYS: Mapping[str, tuple[str, Sequence[str], type]] = {
    "RSA": ("rsa_public_key", RSA_ALGORITHMS, RSAPublicKey),
    "ECDSA": ("ecdsa_public_key", ECDSA_ALGORITHMS, EllipticCurvePublicKey),
}
"""Kind of keys → the option, its algorithms, the type."""


def previous_keys(options: TokenOptions) -> dict[str, Key]:
    """Return the keys that `hmac_secret_key` replaces, by name of algorithm.

    Raises:
        InvalidKey: the option holds an asymmetric key.
    """
    name = options.name_of("hmac_previous_secret_key")
    return _hmac_keys(name, options.hmac_previous_secret_key)


def _hmac_keys(option: str, secret: str) -> dict[str, Key]:
    if not secret:
        return {}
    algorithms = get_default_algorithms()
    try:
        return {
            name: Key(algorithms[name], algorithms[name].prepare_key(secret))
            for name in HMAC_ALGORITHMS
        }
    except InvalidKeyError:
        raise InvalidKey(f"{option} holds an asymmetric key") from None


def _public_key(option: str, pem: str) -> object:
    data = pem.encode()
    try:
        if b"BEGIN CERTIFICATE" in data:
            return x509.load_pem_x509_certificate(data).public_key()
        return load_pem_public_key(data)
    except (ValueError, TypeError):
        raise InvalidKey(f"{option} is not a public key or certificate in PEM form") from None


_FAILURES = (
    PyJWTError,
    OSError,
    http.client.HTTPException,
    AttributeError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What fetching a key set and reading it may raise."""


class KeySet:
    """The RSA signing keys of a JSON Web Key Set endpoint, cached for an hour."""

    def __init__(self, url: str, option: str = "token_jwks_public_endpoint") -> None:
        """
        Args:
            url: of the endpoint.
            option: its name, for the log.
        """
        self._option = option
        self._client = PyJWKClient(url, cache_jwk_set=False, timeout=KEY_SET_TIMEOUT)
        self._keys: dict[str, Any] = {}
        self._fresh_until = 0.0
        self._next_fetch = 0.0
        self._fetching: asyncio.Task[bool] | None = None
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="realtime-jwks")

    async def key(self, key_id: str) -> Any | None:
        """Return the key with this ID; None if the endpoint has none.

        Fetches the set when needed; concurrent callers share one fetch. An ID is unknown only if a
        fetch that ended after the call says so: the endpoint may have got the key a moment ago, and
        strangers who send unknown IDs decide when the cooldown begins.

        Raises:
            KeysUnavailable: the set cannot be fetched, or not yet again.
        """
        if time.monotonic() < self._fresh_until and key_id in self._keys:
            return self._keys[key_id]
        if self._fetching is None:
            if time.monotonic() < self._next_fetch:
                raise KeysUnavailable
            self._fetching = asyncio.create_task(self._fetch())
        if not await asyncio.shield(self._fetching):
            raise KeysUnavailable
        return self._keys.get(key_id)

    async def _fetch(self) -> bool:
        """Fetch the set; return whether that succeeded."""
        try:
            for attempt in range(1, KEY_SET_ATTEMPTS + 1):
                try:
                    self._keys = await self._load()
                except _FAILURES as error:
                    if attempt == KEY_SET_ATTEMPTS:
                        logger.error(
                            "Could not fetch the key set of %s: %s", self._option, _why(error)
                        )
                else:
                    self._fresh_until = time.monotonic() + KEY_SET_LIFETIME
                    return True
            return False
        finally:
            self._next_fetch = time.monotonic() + KEY_SET_COOLDOWN
            self._fetching = None

    async def _load(self) -> dict[str, Any]:
        """Fetch the set and return its RSA signing keys, by key ID.

        Raises:
            one of _FAILURES: the endpoint does not answer, or not with a key set.
        """
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(self._executor, self._client.fetch_data)
        return {
            key.key_id: key.key
            for key in PyJWKSet.from_dict(data).keys
            if key.key_id
            and key.key_type == "RSA"
            and key.public_key_use == "sig"
            and isinstance(key.key, RSAPublicKey)
        }

    def close(self) -> None:
        """Stop the thread that fetches."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _why(failure: Exception) -> str:
    """Say in the log why there is no key set, without the URL, which may hold credentials."""
    match failure.__cause__ or failure:
        case HTTPError() as response:
            return f"status {response.code}"
        case URLError() as error:
            return str(error.reason)
        case PyJWTError() | AttributeError() | TypeError() | ValueError() | RecursionError():
            return "the response is not a JSON Web Key Set"
        case error:
            return type(error).__name__
