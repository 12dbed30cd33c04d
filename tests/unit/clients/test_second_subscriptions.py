"""Subscriptions of the second generation: rights, results, joins and leaves, and how they end."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from realtime.node.node import Node
from tests.conftest import connection_token, subscription_token
from tests.server import SECRET
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import Clock, turns

INVALID_TOKEN, BAD_REQUEST, CHANNEL_LIMIT = 3500, 3501, 3505
INSUFFICIENT_STATE = 3010
SUB_CLOSE_DELAY = 25
THREE_CHANNELS = {"client_channel_limit": 3}


# rights


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("a" * 256, 107),
        ("unknown:a", 102),
        ("été", 107),
        ("$a", 103),
        ("a#18", 103),
        ("ours:a", 103),
    ],
    ids=["too long", "namespace", "not ASCII", "private", "another user's", "server side"],
)
async def test_subscribe_that_is_refused(connect: Connect, channel: str, error: int) -> None:
    connection = await connect()
    assert await connection.call("subscribe", channel=channel) == {"error": error}


@pytest.mark.parametrize("options", [{"client_channel_limit": 1}], indirect=True)
async def test_second_subscription_is_refused_before_the_limit(connect: Connect) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="plain:a")
    assert await connection.call("subscribe", channel="plain:a") == {"error": 105}
    assert await connection.call("subscribe", channel="plain:b") == {"error": 106}


@pytest.mark.parametrize("channel", ["$a", "plain:a", "ours:a", "plain:a#18"])
async def test_token_opens_any_channel(connect: Connect, channel: str) -> None:
    connection = await connect()
    token = subscription_token(connection.client.id, channel, info={"a": 1}, ttl=60)
    result = await connection.call("subscribe", channel=channel, token=token)
    assert result["expires"] is True
    assert 55 < result["ttl"] <= 60
    info = connection.client.info_in(channel).chan_info
    assert info is not None
    assert info.json == b'{"a":1}'


async def test_invalid_token_is_an_error_and_another_client_s_one_closes(connect: Connect) -> None:
    connection, other = await connect(), await connect()
    assert await connection.call("subscribe", channel="$a", token="x.y.z") == {"error": 103}
    expired = subscription_token(connection.client.id, "$a", ttl=-5)
    assert await connection.call("subscribe", channel="$a", token=expired) == {"error": 109}
    theirs = subscription_token(other.client.id, "$a")
    await connection.call("subscribe", channel="$a", token=theirs)
    await turns()
    assert connection.closes == [INVALID_TOKEN]


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("publish", {"channel": "open:a", "data": 1}, {}),
        ("publish", {"channel": "open:a", "data": None}, {}),
        ("publish", {"channel": "open:a"}, {"error": 107}),
        ("publish", {"channel": "plain:a", "data": 1}, {"error": 103}),
        ("publish", {"channel": "unknown:a", "data": 1}, {"error": 102}),
        ("presence", {"channel": "plain:a"}, {"error": 108}),
        ("presence", {"channel": "hidden:a"}, {"error": 103}),
        ("presence", {"channel": "unknown:a"}, {"error": 102}),
        ("presence_stats", {"channel": "a"}, {"error": 103}),
        ("history", {"channel": "plain:a"}, {"error": 108}),
        ("history", {"channel": "hidden:a"}, {"error": 103}),
        ("rpc", {"method": "nope"}, {"error": 108}),
        ("unsubscribe", {"channel": "never"}, {}),
        ("sub_refresh", {"channel": "never"}, {"error": 103}),
    ],
)
async def test_other_commands(
    connect: Connect, method: str, params: dict[str, Any], expected: dict[str, Any]
) -> None:
    connection = await connect()
    assert await connection.call(method, **params) == expected
    assert connection.closes == []


# server-side subscriptions


@pytest.mark.parametrize("options", [THREE_CHANNELS], indirect=True)
async def test_too_many_server_side_channels_close(connect: Connect, second_node: Node) -> None:
    await connect(channels=["plain:1", "plain:2", "plain:3"])
    connection = SecondConnection(second_node)
    token = connection_token("17", channels=[f"plain:{number}" for number in range(4)])
    await connection.call("connect", token=token)
    await turns()
    assert connection.closes == [CHANNEL_LIMIT]


async def test_connect_also_subscribes_to_what_the_client_asks_for_and_may_have(
    second_node: Node,
) -> None:
    connection = SecondConnection(second_node)
    names = ["plain:a", "$private", "ours:a", "plain:b#18", "été", "plain:none", "plain:c#17"]
    subs: dict[str, object] = {name: {} for name in names} | {"plain:none": None}
    result = await connection.call("connect", token=connection_token("17"), subs=subs)
    assert set(result["subs"]) == {"plain:a", "plain:c#17"}


async def test_asking_for_an_unknown_namespace_closes(second_node: Node) -> None:
    connection = SecondConnection(second_node)
    await connection.call("connect", token=connection_token("17"), subs={"unknown:a": {}})
    await turns()
    assert connection.closes == [BAD_REQUEST]


async def test_client_may_leave_a_server_side_channel(connect: Connect) -> None:
    connection = await connect(channels=["plain:a"])
    assert await connection.call("subscribe", channel="plain:a") == {"error": 105}
    assert await connection.call("unsubscribe", channel="plain:a") == {}
    assert await connection.call("subscribe", channel="plain:a") == {}


# refresh


@pytest.mark.parametrize(
    ("before", "after", "closes"),
    [
        ((), (), []),
        (("plain:a",), ("plain:a",), []),
        (("plain:a",), ("plain:a", "plain:b"), [INSUFFICIENT_STATE]),
        (("plain:a", "plain:b"), ("plain:a",), [INSUFFICIENT_STATE]),
    ],
)
async def test_refresh_with_other_channels_has_the_client_come_back(
    connect: Connect, before: tuple[str, ...], after: tuple[str, ...], closes: list[int]
) -> None:
    connection = await connect(channels=before)
    await connection.call("subscribe", channel="plain:own")
    await connection.call("refresh", token=connection_token("17", channels=after, ttl=60))
    await turns()
    assert connection.closes == closes


# joins and leaves


async def test_joins_and_leaves_where_they_are_forced(connect: Connect) -> None:
    first, second = await connect(), await connect()
    await first.call("subscribe", channel="a")
    await second.call("subscribe", channel="a")
    await second.call("unsubscribe", channel="a")
    await turns()
    assert first.kinds("a") == ["join", "join", "leave"]
    assert second.kinds("a") == ["join"], "its own join, and not its own leave"


async def test_joins_and_leaves_for_those_who_ask(connect: Connect) -> None:
    asking, other = await connect(), await connect()
    await asking.call("subscribe", channel="asking:a", join_leave=True)
    await other.call("subscribe", channel="asking:a")
    await other.call("unsubscribe", channel="asking:a")
    await turns()
    assert asking.kinds("asking:a") == ["join", "join", "leave"]
    assert other.kinds("asking:a") == []


@pytest.mark.parametrize(
    ("channel", "of_quiet", "of_other"), [("a", False, None), ("plain:a", None, True)]
)
async def test_token_says_of_its_own_subscription_whether_it_has_joins(
    connect: Connect, channel: str, of_quiet: bool | None, of_other: bool | None
) -> None:
    quiet, other = await connect(), await connect()
    await quiet.call("subscribe", channel=channel, token=_joins_token(channel, of_quiet))
    await other.call("subscribe", channel=channel, token=_joins_token(channel, of_other))
    await other.call("unsubscribe", channel=channel)
    await turns()
    assert quiet.kinds(channel) == []
    assert other.kinds(channel) == ["join"]


def _joins_token(channel: str, joins: bool | None) -> str:
    """A subscription token that turns joins on or off, or with None says nothing of them."""
    switch = {"value": joins}
    names = () if joins is None else ("join_leave", "force_push_join_leave")
    claims = {"sub": "17", "channel": channel, "override": dict.fromkeys(names, switch)}
    return jwt.encode(claims, SECRET, algorithm="HS256")


# ends


async def test_server_unsubscribes_with_a_code(connect: Connect, second_node: Node) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="plain:a")
    await second_node.unsubscribe_user("17", "plain:a")
    await second_node.unsubscribe_user("17", "plain:never")
    await turns()
    ending = {"code": 2000, "reason": "server unsubscribe"}
    assert connection.pushed == [
        {"channel": "plain:a", "unsubscribe": ending},
        {"channel": "plain:never", "unsubscribe": ending},
    ]


async def test_expired_subscription_ends_alone_and_can_be_made_again(
    connect: Connect, clock: Clock
) -> None:
    connection = await connect()
    token = subscription_token(connection.client.id, "$a", ttl=60)
    await connection.call("subscribe", channel="$a", token=token)
    await connection.call("subscribe", channel="plain:b")

    await clock.advance(61 + SUB_CLOSE_DELAY)
    await turns(20)

    assert {"code": 2501, "reason": "subscription expired"} in [
        push.get("unsubscribe") for push in connection.pushed
    ]
    assert connection.closes == []
    assert set(connection.client.session.subscriptions) == {"plain:b"}
    again = subscription_token(connection.client.id, "$a", ttl=60)
    assert "error" not in await connection.call("subscribe", channel="$a", token=again)
