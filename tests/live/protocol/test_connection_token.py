"""The connection token: claims and signatures, end to end. docs/protocol.md, 3.2."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.live.configurations import INVALID_TOKEN, MAIN, TOKEN_EXPIRED, Connect, Options, Serve
from tests.live.signing import base64url, sign
from tests.ports import refusing_port
from tests.server import Server
from tests.unit.auth.jwt_parts import rsa_key

FAR = 4102444800  # the year 2100


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
    ("claims", "user"),
    [
        ({"sub": "17"}, "17"),
        ({"sub": "Ünï"}, "Ünï"),
        ({"sub": ""}, ""),
        ({"sub": None}, ""),
        ({}, ""),
    ],
)
async def test_sub_is_the_user(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    claims: dict[str, Any],
    user: str,
) -> None:
    assert await identity(connect, serve(**MAIN), sign(claims), unique) == {"user": user}


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ('{"sub":"17","info":{"b": 1.0, "a": "x"}}', {"b": 1.0, "a": "x"}),
        ('{"sub":"17","info":"text"}', "text"),
        ('{"sub":"17","info":null}', None),
        ('{"sub":"17","b64info":"eyJuIjoxMH0="}', {"n": 10}),
        ('{"sub":"17","info":5,"b64info":"Ng=="}', 6),
    ],
    ids=["object", "string", "null", "b64info", "b64info replaces info"],
)
async def test_info_is_the_connection_info(
    serve: Serve, connect: Connect, unique: str, format_name: str, claims: str, expected: Any
) -> None:
    seen = await identity(connect, serve(**MAIN), sign(claims), unique)

    assert seen == {"user": "17", "conn_info": expected}


@pytest.mark.parametrize("exp", [lambda t: t + 300, lambda t: t + 300.5, lambda t: str(t + 300)])
async def test_exp_may_be_a_number_a_fraction_or_a_numeric_string(
    serve: Serve, connect: Connect, format_name: str, exp: Any
) -> None:
    client = await connect(serve(**MAIN), connected=False)
    token = sign({"sub": "17", "exp": exp(int(time.time()))})

    result = await client.result("connect", {"token": token})

    assert result["expires"] is True
    assert 290 <= result["ttl"] <= 300


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"nbf": 1},
        {"nbf": None},
        {"iat": 1},
        {"iss": "site", "jti": "x", "aud": "a"},
        {"aud": ["a", "b"]},
        {"channels": None},
        {"more": {"x": 1}},
    ],
    ids=str,
)
async def test_token_with_these_claims_connects_for_ever(
    serve: Serve, connect: Connect, format_name: str, claims: dict[str, Any]
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    result = await client.result("connect", {"token": sign({"sub": "17"} | claims)})

    assert set(result) == {"client", "version"}


@pytest.mark.parametrize(
    "claims", [{"exp": 1}, {"exp": 0}, {"exp": -5}, {"exp": "1"}, {"nbf": FAR}], ids=str
)
async def test_token_out_of_its_time_is_error_109(
    serve: Serve, connect: Connect, format_name: str, claims: dict[str, Any]
) -> None:
    client = await connect(serve(**MAIN), connected=False)

    assert await client.error("connect", {"token": sign(claims)}) == TOKEN_EXPIRED


INVALID = {
    "one word": "x",
    "two parts": "a.b",
    "sub is a number": sign({"sub": 17}),
    "exp is an object": sign({"exp": {}}),
    "exp is a word": sign({"exp": "tomorrow"}),
    "exp is a list": sign({"exp": [1]}),
    "channels is a string": sign({"sub": "17", "channels": "a"}),
    "channels holds a number": sign({"sub": "17", "channels": [1]}),
    "b64info is not base64": sign({"sub": "17", "b64info": "***"}),
    "b64info without padding": sign({"sub": "17", "b64info": "eyJuIjoxMH0"}),
    "aud is a number": sign({"sub": "17", "aud": 5}),
    "iss is a number": sign({"sub": "17", "iss": 5}),
    "jti is a number": sign({"sub": "17", "jti": 5}),
    "claims are a list": sign("[1]"),
    "claims are not JSON": sign("hello"),
    "another key": sign({"sub": "17"}, key="another key"),
    "empty key": sign({"sub": "17"}, key=""),
    "algorithm none": ".".join([base64url(b'{"alg":"none"}'), base64url(b'{"sub":"17"}'), ""]),
    "header says another algorithm": sign({"sub": "17"}, header={"alg": "HS512"}),
    "header without algorithm": sign({"sub": "17"}, header={"typ": "JWT"}),
    "RSA without a key": sign({"sub": "17"}, header={"alg": "RS256"}),
    "trailing blank": sign({"sub": "17"}) + " ",
    "trailing line break": sign({"sub": "17"}) + "\n",
    "padding": sign({"sub": "17"}) + "=",
}


@pytest.mark.parametrize("token", INVALID.values(), ids=INVALID.keys())
async def test_token_is_invalid(
    serve: Serve, connect: Connect, format_name: str, token: str
) -> None:
    server = serve(**MAIN)
    client = await connect(server, connected=False)

    await client.send("connect", {"token": token})

    assert await client.closed() == INVALID_TOKEN


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_hmac_algorithms_are_accepted_with_or_without_type(
    serve: Serve, connect: Connect, algorithm: str
) -> None:
    for header in ({"alg": algorithm}, {"alg": algorithm, "typ": "JWT", "kid": "1"}):
        client = await connect(
            serve(**MAIN), token=sign({"sub": "17"}, algorithm=algorithm, header=header)
        )

        await client.result("ping")


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


# asymmetric keys

RSA_KEY = rsa_key()
EC_KEYS = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
}


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """Return the public key in PEM form."""
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


ASYMMETRIC: Options = {
    "token_rsa_public_key": pem(RSA_KEY),
    "token_ecdsa_public_key": pem(EC_KEYS["ES256"]),
}


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
async def test_rsa_algorithms_are_accepted_with_a_public_key(
    serve: Serve, connect: Connect, algorithm: str
) -> None:
    token = jwt.encode({"sub": "17"}, RSA_KEY, algorithm=algorithm)

    client = await connect(serve(**ASYMMETRIC), token=token)

    await client.result("ping")


async def test_ecdsa_is_accepted_with_a_public_key(serve: Serve, connect: Connect) -> None:
    token = jwt.encode({"sub": "17"}, EC_KEYS["ES256"], algorithm="ES256")

    client = await connect(serve(**ASYMMETRIC), token=token)

    await client.result("ping")


async def test_hmac_is_accepted_beside_public_keys(serve: Serve, connect: Connect) -> None:
    client = await connect(serve(**ASYMMETRIC), user="17")

    await client.result("ping")


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode({"sub": "17"}, EC_KEYS["ES384"], algorithm="ES384"),
        sign({"sub": "17"}, key=pem(RSA_KEY)),
        sign({"sub": "17"}, key=pem(EC_KEYS["ES256"])),
    ],
    ids=["another ECDSA key", "HMAC with the RSA key", "HMAC with the ECDSA key"],
)
async def test_public_key_is_no_secret_for_hmac_and_other_keys_are_refused(
    serve: Serve, connect: Connect, token: str
) -> None:
    client = await connect(serve(**ASYMMETRIC), connected=False)

    await client.send("connect", {"token": token})

    assert await client.closed() == INVALID_TOKEN


async def test_while_no_key_set_can_be_fetched_clients_come_back_and_the_log_says_why(
    own_server: Serve, connect: Connect
) -> None:
    server = own_server(token_jwks_public_endpoint=f"http://127.0.0.1:{refusing_port()}/keys")
    token = jwt.encode({"sub": "17"}, RSA_KEY, "RS256", headers={"kid": "1"})

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
