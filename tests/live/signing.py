"""Tokens signed by hand, so that a test decides every byte of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from tests.live.configurations import Connect
from tests.protocol_client import ProtocolClient
from tests.server import SECRET, Server

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


async def connect_expiring(
    connect: Connect,
    server: Server,
    ttl: float,
    user: str = "17",
    info: Any = None,
    **options: Any,
) -> tuple[ProtocolClient, float]:
    """Connect a client by a token that expires soon; it is signed when the connection is open.

    Args:
        ttl: seconds until the token expires.
        options: those of `connect`.

    Returns:
        The client, and when its token expires, in Unix seconds.
    """
    client = await connect(server, connected=False, **options)
    expires_at = time.time() + ttl
    claims = {"sub": user, "exp": expires_at} | ({} if info is None else {"info": info})
    client.client = (await client.result("connect", {"token": sign(claims)}))["client"]
    return client, expires_at
