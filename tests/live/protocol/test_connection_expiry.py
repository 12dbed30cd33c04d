"""Connection expiry and refresh. docs/protocol.md, 3.4 and 3.5."""

from __future__ import annotations

import time
from typing import Any

import pytest

import realtime
from tests.conftest import connection_token
from tests.live.configurations import (
    EXPIRED,
    INSECURE,
    INVALID_TOKEN,
    MAIN,
    Connect,
    Serve,
)
from tests.live.signing import connect_expiring, sign

CLOSE_DELAY = MAIN["client_expired_close_delay"]


async def test_connection_is_closed_after_expiry_and_the_window_to_refresh(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client, expires_at = await connect_expiring(connect, serve(**MAIN), 0.5)
    assert await client.closed() == EXPIRED
    assert time.time() >= expires_at + CLOSE_DELAY - 0.05


async def test_refreshed_connection_outlives_its_first_expiry(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    server = serve(**MAIN)
    client, _ = await connect_expiring(connect, server, 0.5)
    witness, _ = await connect_expiring(connect, server, 0.5)
    result = await client.result("refresh", {"token": connection_token("17", ttl=300)})
    ttl = result.pop("ttl")
    assert 290 <= ttl <= 300
    assert result == {"client": client.client, "version": realtime.__version__, "expires": True}
    assert await witness.closed() == EXPIRED
    await client.result("ping")


@pytest.mark.parametrize(
    ("token", "expected"),
    {
        "x": INVALID_TOKEN,
        sign({"sub": "17"}, key="another key"): INVALID_TOKEN,
        sign({"sub": "17", "exp": 1}, key="another key"): INVALID_TOKEN,
        sign({"sub": "17", "exp": 1}): EXPIRED,
        sign({"sub": "17", "nbf": 4102444800}): EXPIRED,
    }.items(),
    ids=["no token", "another key", "another key and expired", "expired", "not yet"],
)
async def test_refresh_by_a_bad_token_closes_the_connection(
    serve: Serve, connect: Connect, format_name: str, token: str, expected: Any
) -> None:
    client = await connect(serve(**MAIN))
    await client.send("refresh", {"token": token})
    assert await client.closed() == expected


@pytest.mark.parametrize(
    ("claims", "conn_info"),
    [({"sub": "17", "info": {"new": 1}}, {"new": 1}), ({"sub": "17"}, {"old": 1})],
    ids=["info is replaced", "without info the old one stays"],
)
async def test_refresh_replaces_the_info(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    claims: dict[str, Any],
    conn_info: Any,
) -> None:
    channel = f"open:{unique}"
    client = await connect(serve(**MAIN), token=sign({"sub": "17", "info": {"old": 1}}))
    await client.result("subscribe", {"channel": channel})
    await client.result("refresh", {"token": sign(claims)})
    await client.result("publish", {"channel": channel, "data": 1})
    info = {"user": "17", "client": client.client, "conn_info": conn_info}
    assert await client.publication() == {"data": 1, "info": info}


@pytest.mark.parametrize(
    ("first", "renewed", "disconnect"),
    [
        ({"sub": "17"}, {"sub": "18"}, INVALID_TOKEN),
        ({"sub": "17"}, {}, EXPIRED),
        ({}, {"sub": "17"}, EXPIRED),
    ],
    ids=["another user", "no user", "a user for an anonymous client"],
)
@pytest.mark.parametrize("options", [MAIN, INSECURE], ids=["strict", "insecure"])
async def test_refresh_by_a_token_of_another_user_closes_the_connection(
    serve: Serve,
    connect: Connect,
    format_name: str,
    options: dict[str, Any],
    first: dict[str, Any],
    renewed: dict[str, Any],
    disconnect: tuple[int, Any],
) -> None:
    client = await connect(serve(**options), token=sign({**first, "exp": time.time() + 60}))
    await client.send("refresh", {"token": sign({**renewed, "exp": time.time() + 300})})
    assert await client.closed() == disconnect


async def test_tokens_of_an_insecure_connection_set_no_expiry(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    server = serve(**INSECURE, client_expired_close_delay=0, client_command_rates="")
    client = await connect(server, connected=False)
    connected = await client.result("connect", {"token": connection_token("17", ttl=300)})
    expires_at = time.time() + 1
    refreshed = await client.result("refresh", {"token": sign({"sub": "17", "exp": expires_at})})
    assert connected == refreshed
    assert set(connected) == {"client", "version"}
    while time.time() < expires_at + 0.5:
        await client.result("ping")
