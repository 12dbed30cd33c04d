"""What each token leads to in the second generation: connect, refresh, subscribe, sub_refresh.

The tables of docs/protocol.md, 3, 15 and 16. How claims are read is a matter of `auth`.
"""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from realtime.clients.commands.subscription import AMBIGUOUS
from realtime.node.node import Node
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import turns

EXPIRED, INVALID_TOKEN, BAD_REQUEST, CONNECTION_LIMIT = 3005, 3500, 3501, 3504
SOON, PAST = 60, -60
"""Seconds from now."""

Outcome = tuple[dict[str, Any], list[int]]
"""What the reply says, but for what is the same in each, and the close codes."""

OWN: dict[str, Any] = {"sub": "17", "channel": "plain:a"}


def token_of(claims: dict[str, Any]) -> str:
    """A token with these claims; times are seconds from now, but for 0."""
    moved = {
        name: value + time.time() if name in ("exp", "nbf", "expire_at") and value else value
        for name, value in claims.items()
    }
    # the library refuses to write what is not allowed in a token
    return jwt.PyJWS().encode(
        jwt.api_jwt.PyJWT._encode_payload(jwt.api_jwt.PyJWT(), moved), SECRET, algorithm="HS256"
    )


async def outcome(connection: SecondConnection, method: str, **params: Any) -> Outcome:
    """Run a command."""
    result = await connection.call(method, **params)
    await turns()
    told: dict[str, Any] = {name: result[name] for name in result.keys() & {"error", "expires"}}
    return told, connection.closes


CONNECTS: list[tuple[dict[str, Any], Outcome]] = [
    ({"sub": "17"}, ({}, [])),
    ({"sub": "17", "exp": SOON}, ({"expires": True}, [])),
    ({"sub": "17", "exp": SOON, "expire_at": 0}, ({}, [])),
    ({"sub": "17", "exp": PAST}, ({"error": 109}, [])),
    ({"sub": "17", "exp": 0}, ({"error": 109}, [])),
    ({"sub": "17", "nbf": SOON}, ({"error": 109}, [])),
    ({"sub": "17", "expire_at": PAST}, ({"error": 110}, [])),
    ({"sub": "17", "channels": ["unknown:a"]}, ({"error": 102}, [])),
    ({"sub": "17", "channel": "a"}, ({}, [INVALID_TOKEN])),
    ({"sub": 17}, ({}, [INVALID_TOKEN])),
]


@pytest.mark.parametrize(("claims", "expected"), CONNECTS, ids=str)
async def test_connect(second_node: Node, claims: dict[str, Any], expected: Outcome) -> None:
    connection = SecondConnection(second_node)
    assert await outcome(connection, "connect", token=token_of(claims)) == expected


@pytest.mark.parametrize("options", [{"client_user_connection_limit": 1}], indirect=True)
async def test_connection_above_the_limit_of_the_user_is_closed(
    connect: Connect, second_node: Node
) -> None:
    first, second = await connect(), SecondConnection(second_node)
    assert await outcome(second, "connect", token=connection_token("17")) == (
        {},
        [CONNECTION_LIMIT],
    )
    assert first.closes == []


REFRESHES: list[tuple[dict[str, Any], Outcome]] = [
    ({"sub": "17", "exp": SOON}, ({"expires": True}, [])),
    ({"sub": "17"}, ({}, [])),
    ({"sub": "17", "exp": PAST}, ({}, [EXPIRED])),
    ({"sub": "17", "expire_at": PAST}, ({"error": 110}, [])),
    ({"sub": "16", "exp": SOON}, ({}, [INVALID_TOKEN])),
    ({"sub": "17", "channel": "a"}, ({}, [INVALID_TOKEN])),
]


@pytest.mark.parametrize(("claims", "expected"), REFRESHES, ids=str)
async def test_refresh(connect: Connect, claims: dict[str, Any], expected: Outcome) -> None:
    connection = await connect()
    assert await outcome(connection, "refresh", token=token_of(claims)) == expected


SUBSCRIBES: list[tuple[dict[str, Any], Outcome]] = [
    (OWN, ({}, [])),
    (OWN | {"exp": SOON}, ({"expires": True}, [])),
    (OWN | {"exp": SOON, "expire_at": 0}, ({}, [])),
    (OWN | {"exp": PAST}, ({"error": 109}, [])),
    (OWN | {"expire_at": PAST}, ({"error": 110}, [])),
    ({"sub": "17"}, ({"error": 103}, [])),
    (OWN | {"sub": "16"}, ({}, [INVALID_TOKEN])),
    (OWN | {"channel": "plain:b"}, ({}, [INVALID_TOKEN])),
    (OWN | {"client": "another"}, ({}, [])),
    ({"channel": "plain:a", "client": "another"}, ({}, [INVALID_TOKEN])),
]


@pytest.mark.parametrize(("claims", "expected"), SUBSCRIBES, ids=str)
async def test_subscribe(connect: Connect, claims: dict[str, Any], expected: Outcome) -> None:
    connection = await connect()
    told = await outcome(connection, "subscribe", channel="plain:a", token=token_of(claims))
    assert told == expected


OF_NOBODY: dict[str, Any] = {"channel": "plain:a", "exp": SOON}


@pytest.mark.parametrize(
    ("user", "closes"), [("", []), ("17", [INVALID_TOKEN])], ids=["anonymous", "user"]
)
async def test_token_without_a_user_is_for_anonymous_clients(
    connect: Connect, user: str, closes: list[int]
) -> None:
    connection = await connect(user)
    expected = ({} if closes else {"expires": True}, closes)
    told = await outcome(connection, "subscribe", channel="plain:a", token=token_of(OF_NOBODY))
    assert told == expected


async def test_token_without_a_user_refreshes_subscriptions_of_anonymous_clients(
    connect: Connect,
) -> None:
    connection, token = await connect(""), token_of(OF_NOBODY)
    await connection.call("subscribe", channel="plain:a", token=token)
    told = await outcome(connection, "sub_refresh", channel="plain:a", token=token)
    assert told == ({"expires": True}, [])


SUB_REFRESHES: list[tuple[dict[str, Any], Outcome]] = [
    (OWN | {"exp": SOON}, ({"expires": True}, [])),
    (OWN, ({}, [])),
    (OWN | {"exp": PAST}, ({"error": 109}, [])),
    (OWN | {"expire_at": PAST}, ({"error": 110}, [])),
    ({"sub": "17"}, ({}, [INVALID_TOKEN])),
    (OWN | {"sub": "16"}, ({}, [INVALID_TOKEN])),
    (OWN | {"channel": "plain:b"}, ({}, [INVALID_TOKEN])),
]


@pytest.mark.parametrize(("claims", "expected"), SUB_REFRESHES, ids=str)
async def test_sub_refresh(connect: Connect, claims: dict[str, Any], expected: Outcome) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="plain:a")
    told = await outcome(connection, "sub_refresh", channel="plain:a", token=token_of(claims))
    assert told == expected


async def test_sub_refresh_needs_a_token(connect: Connect) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="plain:a")
    assert await outcome(connection, "sub_refresh", channel="plain:a") == ({"error": 107}, [])


async def test_server_side_subscription_cannot_be_refreshed(connect: Connect) -> None:
    connection = await connect(channels=["plain:a"])
    told = await outcome(connection, "sub_refresh", channel="plain:a", token=token_of(OWN))
    assert told == ({}, [BAD_REQUEST])


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        ({}, {}),
        ({"recover": True, "offset": 0, "epoch": "E"}, {"was_recovering": True}),
        ({"type": 1}, {"error": 103}),
        ({"flag": 1}, {}),
        ({"unheard_of": 1}, {}),
    ],
    ids=str,
)
async def test_subscribe_without_history(
    connect: Connect, asks: dict[str, Any], expected: dict[str, Any]
) -> None:
    connection = await connect()
    assert await connection.call("subscribe", channel="plain:a", **asks) == expected


async def test_log_blames_no_name_where_a_token_is_missing(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect("17")
    with caplog.at_level("INFO", "realtime.client"):
        private = await client.call("subscribe", channel="$a#17#17")
        listing = await client.call("subscribe", channel="a#17#17")
    assert private == listing == {"error": 103}
    assert [AMBIGUOUS in record.getMessage() for record in caplog.records] == [True]
