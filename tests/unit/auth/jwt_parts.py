"""Build tokens by hand, without the service's own code and without its JWT library."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

SECRET = "a secret of the tests, long enough for every HMAC algorithm there is; 64 bytes"
NOW = 1_700_000_000.0

HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
CURVES: dict[str, Any] = {"256": ec.SECP256R1(), "384": ec.SECP384R1(), "512": ec.SECP521R1()}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def base64_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


def segment(value: object) -> str:
    return base64url(value if isinstance(value, bytes) else json.dumps(value).encode())


def pem(key: Any) -> str:
    """Return the public key of a private one, in the form of an option."""
    public = key.public_key()
    return public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def sign(message: bytes, algorithm: str, key: Any) -> bytes:
    size = algorithm[2:]
    match algorithm[:2]:
        case "HS":
            return hmac.digest(key.encode(), message, f"sha{size}")
        case "RS":
            signature: bytes = key.sign(message, padding.PKCS1v15(), HASHES[size])
            return signature
        case "PS":
            hash_ = HASHES[size]
            pss = padding.PSS(padding.MGF1(hash_), hash_.digest_size)
            signed: bytes = key.sign(message, pss, hash_)
            return signed
        case "ES":
            width = (key.curve.key_size + 7) // 8
            parts = decode_dss_signature(key.sign(message, ec.ECDSA(HASHES[size])))
            return b"".join(part.to_bytes(width, "big") for part in parts)
    return b""


def token(
    claims: object,
    algorithm: str = "HS256",
    key: Any = SECRET,
    *,
    header: Mapping[str, object] | None = None,
) -> str:
    """Build a token in compact form. Claims given as bytes need not be JSON."""
    head = segment({"alg": algorithm, "typ": "JWT"} if header is None else header)
    message = f"{head}.{segment(claims)}"
    return f"{message}.{base64url(sign(message.encode(), algorithm, key))}"


@cache
def rsa_key(number: int = 1) -> rsa.RSAPrivateKey:
    """Return one of a few keys: to make one takes long, and each worker imports all tests."""
    return rsa.generate_private_key(65537, 2048)


def jwk(key: rsa.RSAPrivateKey, key_id: str | None, **fields: object) -> dict[str, object]:
    """Return the public key as an entry of a key set."""

    def number(value: int) -> str:
        return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))

    numbers = key.public_key().public_numbers()
    entry: dict[str, object] = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    if key_id is not None:
        entry["kid"] = key_id
    return {**entry, "use": "sig", "alg": "RS256", **fields}
