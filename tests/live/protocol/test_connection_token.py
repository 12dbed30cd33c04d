"""The connection token, end to end. Its rules are those of `tests/unit/auth`.

docs/protocol.md, 3.2.
"""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from tests.live.configurations import INVALID_TOKEN, MAIN, TOKEN_EXPIRED, Connect, Serve
from tests.live.signing import sign
from tests.ports import refusing_port
from tests.server import Server
from tests.unit.auth.jwt_parts import rsa_key


async def identity(connect: Connect, server: Server, token: str, unique: str) -> dict[str, Any]:
    """Return the client info that others see after a connect with this token."""
    channel = f"anonymous:{unique}"
    client = await connect(server, token=token)
    await client.result("subscribe", {"channel": channel})
    presence = (await client.result("presence", {"channel": channel}))["presence"]
    info: dict[str, Any] = presence[client.client]
    assert info.pop("client") == client.client
    return info


@pytest.mark.parametrize(
    ("claims", "seen"),
    [
        ({}, {"user": ""}),
        ({"sub": "Ünï", "info": {"b": 1.0}}, {"user": "Ünï", "conn_info": {"b": 1.0}}),
        ({"sub": "17", "info": None}, {"user": "17", "conn_info": None}),
        ({"sub": "17", "info": 5, "b64info": "Ng=="}, {"user": "17", "conn_info": 6}),
    ],
    ids=str,
)
async def test_claims_are_who_the_client_is(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    claims: dict[str, Any],
    seen: dict[str, Any],
) -> None:
    assert await identity(connect, serve(**MAIN), sign(claims), unique) == seen


async def test_token_ends_with_its_exp(serve: Serve, connect: Connect, format_name: str) -> None:
    client = await connect(serve(**MAIN), connected=False)
    assert await client.error("connect", {"token": sign({"exp": 1})}) == TOKEN_EXPIRED
    token = sign({"sub": "17", "exp": str(int(time.time()) + 300)})
    result = await client.result("connect", {"token": token})
    assert result["expires"] is True
    assert 290 <= result["ttl"] <= 300


@pytest.mark.parametrize(
    "token",
    ["x", sign({"sub": 17}), sign({"sub": "17"}, key="another key"), sign({"sub": "17"}) + "="],
    ids=["one word", "claim", "signature", "padding"],
)
async def test_token_is_invalid(
    serve: Serve, connect: Connect, format_name: str, token: str
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    await client.send("connect", {"token": token})
    assert await client.closed() == INVALID_TOKEN


async def test_no_token_shows_in_the_log(own_server: Serve, connect: Connect) -> None:
    server = own_server(**MAIN)
    tokens = [sign({"sub": "17"}), sign({"sub": "17"}, key="another key"), sign({"exp": 1})]
    for token in tokens:
        client = await connect(server, connected=False)
        await client.send("connect", {"token": token})
        await client.socket.close()
    server.stop()
    assert "invalid token" in server.log
    for token in tokens:
        assert token.rsplit(".", 1)[1] not in server.log


async def test_public_key_of_the_options_verifies_and_is_no_secret_for_hmac(
    serve: Serve, connect: Connect
) -> None:
    key = rsa_key()
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    server = serve(token_rsa_public_key=public.decode())
    client = await connect(server, token=jwt.encode({"sub": "17"}, key, algorithm="RS256"))
    await client.result("ping")
    forger = await connect(server, connected=False)
    await forger.send("connect", {"token": sign({"sub": "17"}, key=public.decode())})
    assert await forger.closed() == INVALID_TOKEN


async def test_while_no_key_set_can_be_fetched_clients_come_back_and_the_log_says_why(
    own_server: Serve, connect: Connect
) -> None:
    server = own_server(token_jwks_public_endpoint=f"http://127.0.0.1:{refusing_port()}/keys")
    token = jwt.encode({"sub": "17"}, rsa_key(), "RS256", headers={"kid": "1"})

    for _ in range(2):
        client = await connect(server, connected=False)
        await client.send("connect", {"token": token})
        assert await client.closed() == (
            3004,
            '{"reason":"internal server error","reconnect":true}',
        )

    assert "Command connect failed" not in server.log
    assert server.log.count("Could not fetch the key set of token_jwks_public_endpoint: ") == 1
    assert "Connection refused" in server.log
    assert "Traceback" not in server.log
