"""Tokens signed by hand, so that a test decides every byte of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from tests.server import SECRET

HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def base64url(data: bytes) -> str:
    """Base64 of the URL alphabet, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def sign(
    claims: dict[str, Any] | str,
    *,
    algorithm: str = "HS256",
    key: str = SECRET,
    header: dict[str, Any] | None = None,
) -> str:
    """A token with these claims (a string: the text of the claims as it is)."""
    text = claims if isinstance(claims, str) else json.dumps(claims)
    header = {"alg": algorithm} if header is None else header
    signed = f"{base64url(json.dumps(header).encode())}.{base64url(text.encode())}"
    signature = hmac.new(key.encode(), signed.encode(), HASHES[algorithm]).digest()
    return f"{signed}.{base64url(signature)}"
