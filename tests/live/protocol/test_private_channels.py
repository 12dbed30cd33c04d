"""Private channels: the subscription token. docs/protocol.md, 3.7."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import subscription_token
from tests.live.configurations import MAIN, PERMISSION_DENIED, TOKEN_EXPIRED, Connect, Serve
from tests.live.signing import sign


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c"], ids=["none", "empty", "x", "a.b.c"])
async def test_private_channel_without_a_valid_token_is_error_103(
    serve: Serve, connect: Connect, unique: str, format_name: str, token: str | None
) -> None:
    client = await connect(serve(**MAIN))
    params = {"channel": f"${unique}"} | ({} if token is None else {"token": token})
    assert await client.error("subscribe", params) == PERMISSION_DENIED
    await client.result("ping")


FAR = 4102444800  # the year 2100

# what a token says is in tests/unit/auth
CLAIMS: list[Any] = [
    pytest.param({}, {}, id="right"),
    pytest.param({"client": "other"}, 103, id="another client"),
    pytest.param({"client": ""}, 103, id="no client"),
    pytest.param({"channel": "$other"}, 103, id="another channel"),
    pytest.param({"channel": ""}, 103, id="no channel"),
    pytest.param({"sub": "someone else"}, {}, id="sub is not checked"),
    pytest.param({"exp": 1}, 109, id="expired"),
    pytest.param({"exp": 1, "client": "other"}, 109, id="expired and another client"),
    pytest.param({"exp": FAR, "eto": True}, {}, id="eto"),
]


@pytest.mark.parametrize(("claims", "expected"), CLAIMS)
async def test_claims_of_a_subscription_token(
    serve: Serve,
    connect: Connect,
    unique: str,
    format_name: str,
    claims: dict[str, Any],
    expected: dict[str, Any] | int,
) -> None:
    client = await connect(serve(**MAIN))
    token = sign({"client": client.client, "channel": f"${unique}"} | claims)
    reply = await client.call("subscribe", {"channel": f"${unique}", "token": token})
    if isinstance(expected, dict):
        assert reply["result"] == expected
    else:
        assert reply["error"] == {103: PERMISSION_DENIED, 109: TOKEN_EXPIRED}[expected]


async def test_private_and_user_limited_need_both_token_and_user(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN), user="17")
    mine, other = f"${unique}#17", f"${unique}#18"
    assert await client.error("subscribe", {"channel": mine}) == PERMISSION_DENIED
    for channel, expected in ((mine, {"result": {}}), (other, {"error": PERMISSION_DENIED})):
        token = subscription_token(client.client, channel)
        reply = await client.call("subscribe", {"channel": channel, "token": token})
        reply.pop("id")
        assert reply == expected


async def test_token_of_a_channel_that_is_not_private_is_ignored(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    client = await connect(serve(**MAIN))
    assert await client.result("subscribe", {"channel": unique, "token": "rubbish"}) == {}
