"""Subscription expiry and sub_refresh. docs/protocol.md, 3.7 and 3.12.

An expired token in sub_refresh is error 109, where the reference server has a defect.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import connection_token, subscription_token
from tests.live.configurations import (
    BAD_REQUEST,
    BAD_REQUEST_ERROR,
    INVALID_TOKEN,
    MAIN,
    PERMISSION_DENIED,
    SUBSCRIPTION_EXPIRED,
    TOKEN_EXPIRED,
    Connect,
    Serve,
)
from tests.live.signing import sign
from tests.protocol_client import ProtocolClient

CLOSE_DELAY = MAIN["client_expired_sub_close_delay"]
SOON = 0.5


async def subscribe_privately(
    serve: Serve, connect: Connect, channel: str, ttl: float | None = None, **claims: Any
) -> ProtocolClient:
    """Connect a client and subscribe it to a private channel by a token with more claims.

    Args:
        ttl: seconds until the token expires, counted from when the client is connected.
    """
    client: ProtocolClient = await connect(serve(**MAIN))
    if ttl is not None:
        claims["exp"] = time.time() + ttl
    token = sign({"client": client.client, "channel": channel} | claims)
    await client.result("subscribe", {"channel": channel, "token": token})
    return client


async def test_expired_subscription_closes_the_whole_connection_after_the_window(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    earliest = time.time() + SOON + CLOSE_DELAY
    client = await subscribe_privately(serve, connect, f"${unique}", ttl=SOON)
    assert await client.closed() == SUBSCRIPTION_EXPIRED
    assert time.time() >= earliest - 0.05


async def test_refreshed_subscription_outlives_its_first_expiry(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"${unique}"
    client = await subscribe_privately(serve, connect, channel, ttl=SOON)
    witness = await subscribe_privately(serve, connect, channel, ttl=SOON)
    token = subscription_token(client.client, channel, ttl=300)
    result = await client.result("sub_refresh", {"channel": channel, "token": token})
    ttl = result.pop("ttl")
    assert 290 <= ttl <= 300
    assert result == {"expires": True}
    assert await witness.closed() == SUBSCRIPTION_EXPIRED
    await client.result("ping")


async def test_sub_refresh_by_a_token_without_exp_lifts_the_expiry(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"${unique}"
    client = await subscribe_privately(serve, connect, channel, ttl=SOON)
    witness = await subscribe_privately(serve, connect, channel, ttl=SOON)
    token = subscription_token(client.client, channel)
    assert await client.result("sub_refresh", {"channel": channel, "token": token}) == {}
    assert await witness.closed() == SUBSCRIPTION_EXPIRED
    await client.result("ping")


async def test_sub_refresh_ignores_eto_and_works_for_channels_that_are_not_private(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": unique})
    claims = {"client": client.client, "channel": unique, "exp": time.time() + SOON, "eto": True}
    result = await client.result("sub_refresh", {"channel": unique, "token": sign(claims)})
    assert result["expires"] is True
    assert await client.closed() == SUBSCRIPTION_EXPIRED


@pytest.mark.parametrize(
    ("claims", "chan_info"),
    [({"info": {"new": 1}}, {"chan_info": {"new": 1}}), ({}, {})],
    ids=["new info", "no info"],
)
async def test_sub_refresh_replaces_the_channel_info_also_by_nothing(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    claims: dict[str, Any],
    chan_info: dict[str, Any],
) -> None:
    channel = f"$open:{unique}"
    client = await subscribe_privately(serve, connect, channel, info={"old": 1})
    token = sign({"client": client.client, "channel": channel} | claims)
    await client.result("sub_refresh", {"channel": channel, "token": token})
    await client.result("publish", {"channel": channel, "data": 1})
    info = {"user": "17", "client": client.client} | chan_info
    assert await client.publication() == {"data": 1, "info": info}


# the checks of sub_refresh, in order


@pytest.mark.parametrize("token", ["", "rubbish"])
async def test_sub_refresh_without_a_subscription_is_error_103_whatever_the_token(
    serve: Serve, connect: Connect, unique: str, format_name: str, token: str
) -> None:
    client = await connect(serve(**MAIN))
    error = await client.error("sub_refresh", {"channel": unique, "token": token})
    assert error == PERMISSION_DENIED


@pytest.mark.parametrize("token", ["", "rubbish"])
async def test_sub_refresh_of_a_server_side_subscription_is_a_bad_request(
    serve: Serve, connect: Connect, unique: str, format_name: str, token: str
) -> None:
    client = await connect(serve(**MAIN), token=connection_token("17", channels=[unique]))
    await client.send("sub_refresh", {"channel": unique, "token": token})
    assert await client.closed() == BAD_REQUEST


async def test_sub_refresh_with_an_empty_token_is_error_107(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": unique})
    error = await client.error("sub_refresh", {"channel": unique, "token": ""})
    assert error == BAD_REQUEST_ERROR


async def test_sub_refresh_by_an_expired_token_is_error_109_and_keeps_the_expiry(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    channel = f"${unique}"
    client = await subscribe_privately(serve, connect, channel, ttl=SOON)
    expired = subscription_token(client.client, channel, ttl=-10)
    error = await client.error("sub_refresh", {"channel": channel, "token": expired})
    assert error == TOKEN_EXPIRED
    assert await client.closed() == SUBSCRIPTION_EXPIRED


@pytest.mark.parametrize("wrong", ["signature", "expired signature", "client", "channel"])
async def test_sub_refresh_by_a_wrong_token_closes_with_3002(
    serve: Serve, connect: Connect, unique: str, format_name: str, wrong: str
) -> None:
    client = await connect(serve(**MAIN))
    await client.result("subscribe", {"channel": unique})
    right: dict[str, Any] = {"client": client.client, "channel": unique}
    token = {
        "signature": sign(right, key="another key"),
        "expired signature": sign(right | {"exp": 1}, key="another key"),
        "client": sign(right | {"client": "other"}),
        "channel": sign(right | {"channel": "other"}),
    }[wrong]
    await client.send("sub_refresh", {"channel": unique, "token": token})
    assert await client.closed() == INVALID_TOKEN
