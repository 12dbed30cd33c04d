"""Channel names on the wire: which are accepted, and which rules apply where.

docs/protocol.md, 1.2 and 1.3.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.configurations import (
    BAD_REQUEST,
    ERRORS,
    LIMIT_EXCEEDED,
    LIMITED,
    MAIN,
    NAMESPACE_NOT_FOUND,
    PERMISSION_DENIED,
    Connect,
    Serve,
)

ACCEPTED = [
    "plain",
    "*",
    "a&b",
    "a/b",
    "a b",
    "a\nb",
    ":x",
    "::a",
    "ns:",
    "ns:$a",
    "a#17",
    "a#17,18",
    "a#18,17",
    "#17",
    "#17,",
    "ns:a#17",
    "a" * 255,
]

REFUSED = {
    "é": 107,
    "日本": 107,
    "é" * 127 + "a": 107,
    "nope:a": 102,
    "$nope:a": 102,
    "nope:a#17": 102,
    "ns#17:a": 102,
    "a#ns:17": 102,
    "$": 103,
    "$p": 103,
    "$ns:a": 103,
    "a#18": 103,
    "a#": 103,
    "a#17#18": 103,
    "a#18#17": 103,
    "#18#17": 103,
    "ns:#18#17": 103,
    "a#17 ": 103,
    "a" * 256: 106,
}

READ_METHODS = ["presence", "presence_stats", "history"]


def readable(channel: Any) -> str | None:
    """Return the ID of a test case: the length instead of a long name."""
    if not isinstance(channel, str):
        return None
    return ascii(channel) if len(channel) < 30 else f"{len(channel)}characters"


@pytest.mark.parametrize("channel", ACCEPTED, ids=readable)
async def test_subscribe_accepts_the_name(
    serve: Serve, connect: Connect, format_name: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.result("subscribe", {"channel": channel}) == {}
    assert await client.error("subscribe", {"channel": channel}) == ERRORS[105]


@pytest.mark.parametrize(("channel", "code"), REFUSED.items(), ids=readable)
async def test_subscribe_refuses_the_name(
    serve: Serve, connect: Connect, format_name: str, channel: str, code: int
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.error("subscribe", {"channel": channel}) == ERRORS[code]


@pytest.mark.parametrize("channel", ["anonymous:a#", "anonymous:a#,17"])
async def test_empty_element_of_the_user_list_is_not_the_anonymous_user(
    serve: Serve, connect: Connect, format_name: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="")

    assert await client.error("subscribe", {"channel": channel}) == ERRORS[103]


async def test_anonymous_user_is_not_the_user_of_a_user_limited_channel(
    serve: Serve, connect: Connect, format_name: str
) -> None:
    client = await connect(serve(**MAIN), user="")

    assert await client.error("subscribe", {"channel": "anonymous:a#17"}) == PERMISSION_DENIED


@pytest.mark.parametrize("method", ["subscribe", "unsubscribe", "publish", *READ_METHODS])
async def test_empty_channel_of_a_client_is_a_bad_request(
    serve: Serve, connect: Connect, format_name: str, method: str
) -> None:
    client = await connect(serve(**MAIN))
    params = {"channel": "", "data": {}} if method == "publish" else {"channel": ""}

    await client.send(method, params)

    assert await client.closed() == BAD_REQUEST


@pytest.mark.parametrize(
    ("method", "code"),
    {"publish": 107, "presence": 107, "presence_stats": 107, "history": 107}.items(),
)
async def test_non_ascii_channel_of_a_client_is_error_107(
    serve: Serve, connect: Connect, format_name: str, method: str, code: int
) -> None:
    client = await connect(serve(**MAIN))
    params = {"channel": "open:é"} | ({"data": 1} if method == "publish" else {})

    assert await client.error(method, params) == ERRORS[code]


@pytest.mark.parametrize("method", ["subscribe", "publish", *READ_METHODS])
async def test_unknown_namespace_of_a_client_is_error_102(
    serve: Serve, connect: Connect, format_name: str, method: str
) -> None:
    client = await connect(serve(**MAIN))
    params = {"channel": "nope:a"} | ({"data": 1} if method == "publish" else {})

    assert await client.error(method, params) == NAMESPACE_NOT_FOUND


@pytest.mark.parametrize("channel", ["nope:a", "a" * 256, "$p", "a#18"], ids=readable)
async def test_unsubscribe_succeeds_for_a_name_that_subscribe_refuses(
    serve: Serve, connect: Connect, format_name: str, channel: str
) -> None:
    client = await connect(serve(**MAIN))

    assert await client.result("unsubscribe", {"channel": channel}) == {}


@pytest.mark.parametrize("channel", ["open:" + "a" * 251, "a" * 60_000], ids=["256 bytes", "60 kB"])
@pytest.mark.parametrize("method", ["publish", *READ_METHODS])
async def test_too_long_channel_of_a_client_is_error_106(
    serve: Serve, connect: Connect, format_name: str, method: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="17")
    params = {"channel": channel} | ({"data": 1} if method == "publish" else {})

    assert await client.error(method, params) == ERRORS[106]


@pytest.mark.parametrize("channel", ["$open:a", "open:a#18"], ids=["private", "limited"])
async def test_client_publish_checks_neither_privacy_nor_users(
    serve: Serve, connect: Connect, format_name: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.result("publish", {"channel": channel, "data": 1}) == {}


@pytest.mark.parametrize("method", ["presence", "presence_stats"])
@pytest.mark.parametrize(
    "channel",
    ["$present:a", "present:a#18"],
    ids=["private", "limited"],
)
async def test_presence_of_a_channel_needs_a_subscription_and_no_other_check(
    serve: Serve, connect: Connect, format_name: str, method: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.error(method, {"channel": channel}) == PERMISSION_DENIED


@pytest.mark.parametrize(
    "channel",
    ["$kept:a", "kept:a#18"],
    ids=["private", "limited"],
)
async def test_history_of_a_channel_needs_a_subscription_and_no_other_check(
    serve: Serve, connect: Connect, format_name: str, channel: str
) -> None:
    client = await connect(serve(**MAIN), user="17")

    assert await client.error("history", {"channel": channel}) == PERMISSION_DENIED


@pytest.mark.parametrize(
    ("channel", "code"),
    {"": 107, "é": 107, "nope:a": 102, "a" * 256: 106}.items(),
    ids=readable,
)
@pytest.mark.parametrize("method", ["publish", "presence", "presence_stats", "history"])
def test_server_api_refuses_the_name(serve: Serve, method: str, channel: str, code: int) -> None:
    params = {"channel": channel} | ({"data": 1} if method == "publish" else {})

    assert serve(**MAIN).api(method, **params) == {"error": ERRORS[code]}


@pytest.mark.parametrize("channel", ["a" * 255, "$p", "a#18", "server_side:a"], ids=readable)
def test_server_api_publishes_whatever_the_rules_for_clients(serve: Serve, channel: str) -> None:
    assert serve(**MAIN).api("publish", channel=channel, data=1) == {"result": {}}


@pytest.mark.parametrize("channel", ["$p", "a#18", "server_side:a", "$ns:a#18"])
async def test_server_side_subscription_is_not_bound_to_the_rules_for_clients(
    serve: Serve, connect: Connect, unique: str, format_name: str, channel: str
) -> None:
    server = serve(**MAIN)
    channel = channel.replace("a", f"{unique}a") if "a#" in channel else channel + unique
    token = connection_token("17", channels=[channel])

    client = await connect(server, token=token)

    server.publish(channel, 1)
    assert await client.push() == {"channel": channel, "data": {"data": 1}}


@pytest.mark.parametrize(
    ("channel", "code"),
    {"é": 107, "a" * 256: 106, "nope:a": 102}.items(),
    ids=["not-ascii", "too-long", "unknown-namespace"],
)
async def test_connect_fails_when_the_token_names_a_server_side_channel_that_cannot_be(
    serve: Serve, connect: Connect, unique: str, format_name: str, channel: str, code: int
) -> None:
    server = serve(**MAIN)
    client = await connect(server, connected=False)
    token = connection_token("17", channels=[unique, channel])

    assert await client.error("connect", {"token": token}) == ERRORS[code]

    assert unique not in server.api("channels")["result"]["channels"]


async def test_server_side_subscriptions_may_exceed_the_channel_limit_and_are_counted(
    serve: Serve, connect: Connect, unique: str, format_name: str
) -> None:
    names = [f"{unique}{n}" for n in range(3)]
    token = connection_token(unique, channels=names)

    client = await connect(serve(**LIMITED), token=token)

    assert await client.error("subscribe", {"channel": unique}) == LIMIT_EXCEEDED
