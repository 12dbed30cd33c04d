"""Keys: which key verifies a token, by the algorithm its header names.

HMAC secret and public keys come from the options; with `token_jwks_public_endpoint` they
come from there and from nowhere else. Signature checks are PyJWT's algorithms, which
compare in constant time.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import time
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

from realtime.config.options import Config

logger = logging.getLogger("realtime.tokens")

HMAC_ALGORITHMS = ("HS256", "HS384", "HS512")
RSA_ALGORITHMS = ("RS256", "RS384", "RS512")
ECDSA_ALGORITHMS = ("ES256", "ES384", "ES512")

KEY_SET_LIFETIME = 3600.0
"""Seconds a fetched key set is used."""
KEY_SET_TIMEOUT = 1.0
"""Seconds one attempt to fetch it may take."""
KEY_SET_ATTEMPTS = 2
KEY_SET_COOLDOWN = 10.0
"""Seconds between fetches, so that tokens with unknown key IDs cannot flood the endpoint."""


class InvalidKey(ValueError):
    """An option does not hold the key it should. Never holds the key."""


class KeysUnavailable(Exception):
    """The key set cannot be fetched now, so nothing can be said about the token."""

    def __init__(self) -> None:
        super().__init__("the key set cannot be fetched")


class Key(NamedTuple):
    """An algorithm with a key prepared for it."""

    algorithm: Algorithm
    key: Any

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature is this key's signature of the message."""
        return self.algorithm.verify(message, self.key, signature)


def configured_keys(config: Config) -> dict[str, Key]:
    """The keys in the options, by algorithm name.

    Raises:
        InvalidKey: an option holds something else than its kind of key.
    """
    algorithms = get_default_algorithms()
    keys: dict[str, Key] = {}
    if secret := config.token_hmac_secret_key:
        try:
            for name in HMAC_ALGORITHMS:
                keys[name] = Key(algorithms[name], algorithms[name].prepare_key(secret))
        except InvalidKeyError:
            raise InvalidKey("token_hmac_secret_key holds an asymmetric key") from None
    if config.token_rsa_public_key:
        public = _public_key("token_rsa_public_key", config.token_rsa_public_key)
        if not isinstance(public, RSAPublicKey):
            raise InvalidKey("token_rsa_public_key is not an RSA key")
        keys |= {name: Key(algorithms[name], public) for name in RSA_ALGORITHMS}
    if config.token_ecdsa_public_key:
        public = _public_key("token_ecdsa_public_key", config.token_ecdsa_public_key)
        if not isinstance(public, EllipticCurvePublicKey):
            raise InvalidKey("token_ecdsa_public_key is not an ECDSA key")
        for name in ECDSA_ALGORITHMS:
            try:
                # each of these algorithms belongs to one curve
                keys[name] = Key(algorithms[name], algorithms[name].prepare_key(public))
            except InvalidKeyError:
                continue
    return keys


def _public_key(option: str, pem: str) -> object:
    data = pem.encode()
    try:
        if b"BEGIN CERTIFICATE" in data:
            return x509.load_pem_x509_certificate(data).public_key()
        return load_pem_public_key(data)
    except (ValueError, TypeError):
        raise InvalidKey(f"{option} is not a public key or certificate in PEM form") from None


class KeySet:
    """The RSA signing keys of a JSON Web Key Set endpoint, cached for an hour."""

    def __init__(self, url: str) -> None:
        self._client = PyJWKClient(url, cache_jwk_set=False, timeout=KEY_SET_TIMEOUT)
        self._keys: dict[str, Any] = {}
        self._fresh_until = 0.0
        self._next_fetch = 0.0
        self._fetching: asyncio.Task[None] | None = None
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="realtime-jwks")

    async def key(self, key_id: str) -> Any | None:
        """The key with this ID, None if the set has none.

        Raises:
            KeysUnavailable: the set cannot be fetched and no earlier one is fresh.
        """
        now = time.monotonic()
        if now >= self._fresh_until or (key_id not in self._keys and now >= self._next_fetch):
            if self._fetching is None:
                if now < self._next_fetch:
                    raise KeysUnavailable
                self._fetching = asyncio.create_task(self._fetch())
            await asyncio.shield(self._fetching)
            if time.monotonic() >= self._fresh_until:
                raise KeysUnavailable
        return self._keys.get(key_id)

    async def _fetch(self) -> None:
        failure: Exception | None = None
        try:
            for _ in range(KEY_SET_ATTEMPTS):
                try:
                    data = await asyncio.get_running_loop().run_in_executor(
                        self._executor, self._client.fetch_data
                    )
                    key_set = PyJWKSet.from_dict(data)
                except (
                    PyJWTError,
                    OSError,
                    http.client.HTTPException,
                    AttributeError,
                    TypeError,
                    ValueError,
                    RecursionError,
                ) as error:
                    failure = error
                    continue
                self._keys = {
                    key.key_id: key.key
                    for key in key_set.keys
                    if key.key_id
                    and key.key_type == "RSA"
                    and key.public_key_use == "sig"
                    and isinstance(key.key, RSAPublicKey)
                }
                self._fresh_until = time.monotonic() + KEY_SET_LIFETIME
                return
            assert failure is not None
            logger.error(
                "The key set of token_jwks_public_endpoint cannot be fetched: %s", _why(failure)
            )
        finally:
            self._next_fetch = time.monotonic() + KEY_SET_COOLDOWN
            self._fetching = None

    def close(self) -> None:
        """Stop the fetching thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _why(failure: Exception) -> str:
    """Why no key set came, for the log: without the URL, which may hold credentials."""
    match failure.__cause__ or failure:
        case HTTPError() as answer:
            return f"status {answer.code}"
        case URLError() as error:
            return str(error.reason)
        case PyJWTError() | AttributeError() | TypeError() | ValueError() | RecursionError():
            return "the answer is no JSON Web Key Set"
        case error:
            return type(error).__name__


SECRET_LEAST_BYTES = 32
"""As long as the digest of SHA-256 (RFC 7518, 3.2)."""
