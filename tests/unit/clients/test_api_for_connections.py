"""`POST /api/<method>` for connections: which are meant, and what the params of each method do."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.node.node import Node
from realtime.server_api import http, http_v2
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection, publish, published
from tests.unit.parts import data, position_of, turns

FORCED, EXPIRED = 3503, 3005


async def call(node: Node, method: str, /, error_mode: str = "", **params: Any) -> tuple[int, Any]:
    """Return status and decoded body of the response."""
    head = http.Head("POST", "", None, None, error_mode)
    response = await http_v2.handle(node, method, head, json.dumps(params).encode())
    await turns()
    return response.status, json.loads(response.body)


async def connect_three(connect: Connect) -> list[SecondConnection]:
    """Two connections of a user, and one of another, each with a session."""
    connections = [await connect(user) for user in ("17", "17", "18")]
    for number, connection in enumerate(connections):
        connection.session = f"S{number}"
    return connections


def is_meant(connections: list[SecondConnection], before: list[int]) -> list[bool]:
    """Whether each connection was closed, or was told something."""
    return [
        bool(connection.closes) or len(connection.messages) > told
        for connection, told in zip(connections, before, strict=True)
    ]


METHODS: Mapping[str, dict[str, Any]] = {
    "subscribe": {"channel": "plain:a"},
    "unsubscribe": {"channel": "plain:kept"},
    "disconnect": {},
    "refresh": {"expired": True},
}

SELECTIONS = {
    "the user": ({"user": "17"}, [True, True, False]),
    "a client of the user": ({"user": "17", "client": 1}, [False, True, False]),
    "a session of the user": ({"user": "17", "session": 1}, [False, True, False]),
    "a client of another user": ({"user": "17", "client": 2}, [False, False, False]),
    "a session of another user": ({"user": "17", "session": 2}, [False, False, False]),
    "client and session that differ": (
        {"user": "17", "client": 0, "session": 1},
        [False, False, False],
    ),
    "a client without its user": ({"client": 0}, [False, False, False]),
    "a session without its user": ({"session": 0}, [False, False, False]),
}
"""What is selected, with numbers of connections, and which are meant."""


@pytest.mark.parametrize(("method", "params"), METHODS.items(), ids=METHODS)
@pytest.mark.parametrize(("selection", "meant"), SELECTIONS.values(), ids=SELECTIONS)
async def test_client_and_session_narrow_the_connections_of_a_user(
    second_node: Node,
    connect: Connect,
    method: str,
    params: dict[str, Any],
    selection: dict[str, Any],
    meant: list[bool],
) -> None:
    connections = await connect_three(connect)
    for connection in connections:
        await connection.call("subscribe", channel="plain:kept")
    before = [len(connection.messages) for connection in connections]
    selected = dict(selection)
    if "client" in selected:
        selected["client"] = connections[selected["client"]].client.id
    if "session" in selected:
        selected["session"] = connections[selected["session"]].session
    assert await call(second_node, method, **params, **selected) == (200, {"result": {}})
    assert is_meant(connections, before) == meant


@pytest.mark.parametrize("options", [{"client_anonymous": True}], indirect=True)
@pytest.mark.parametrize("user", [{"user": ""}, {"user": None}, {}], ids=["empty", "null", "none"])
@pytest.mark.parametrize(("method", "params"), METHODS.items(), ids=METHODS)
async def test_empty_user_means_anonymous_connections(
    second_node: Node, connect: Connect, method: str, params: dict[str, Any], user: dict[str, Any]
) -> None:
    anonymous, known = SecondConnection(second_node), await connect()
    await anonymous.call("connect")
    for connection in (anonymous, known):
        await connection.call("subscribe", channel="open:kept")
    before = [len(connection.messages) for connection in (anonymous, known)]
    channel = {"channel": params["channel"].replace("plain", "open")} if "channel" in params else {}
    assert (await call(second_node, method, **{**params, **channel, **user}))[0] == 200
    assert is_meant([anonymous, known], before) == [True, False]


async def test_unsubscribe_without_a_channel_ends_every_subscription(
    second_node: Node, connect: Connect
) -> None:
    connection = await connect()
    for channel in ("plain:a", "plain:b"):
        await connection.call("subscribe", channel=channel)
    await call(second_node, "unsubscribe", user="17")
    assert connection.client.session.subscriptions == {}
    assert await call(second_node, "unsubscribe", user="17", channel="nope:a") == (
        200,
        {"error": {"code": 102, "message": "namespace not found"}},
    )


async def test_subscribe_recovers_since_a_position_and_overrides_options(
    second_node: Node, connect: Connect
) -> None:
    connection = await connect()
    for value in (1, 2, 3):
        await publish(second_node, "asking:a", value)
    epoch = (await position_of(second_node.broker, "asking:a")).epoch
    text = base64.b64encode(b'{"n":1}').decode()

    await call(
        second_node,
        "subscribe",
        user="17",
        channel="asking:a",
        b64data=text,
        recover_since={"offset": 1, "epoch": epoch},
        override={"force_recovery": {"value": True}},
    )

    told = connection.pushed[0]["subscribe"]
    assert (told["data"], told["recoverable"], told["offset"]) == ({"n": 1}, True, 1)
    assert published(connection) == [2, 3]


async def test_default_code_of_a_disconnect_and_of_an_expiry(
    second_node: Node, connect: Connect
) -> None:
    disconnected, expired = await connect("17"), await connect("18")
    await call(second_node, "disconnect", user="17")
    await call(second_node, "refresh", user="18", expired=True)
    assert (disconnected.closes, expired.closes) == ([FORCED], [EXPIRED])


async def test_publication_of_a_client_has_its_info_in_history(
    second_node: Node, connect: Connect
) -> None:
    connection = await connect("17", info={"name": "Ann"})
    await connection.call("subscribe", channel="a")
    await second_node.publish(
        "a",
        data("1"),
        second_node.config.channel,
        connection.client.info_in("a"),
    )

    _, answer = await call(second_node, "history", channel="a", limit=1)

    (kept,) = answer["result"]["publications"]
    assert kept["info"] == {
        "user": "17",
        "client": connection.client.id,
        "conn_info": {"name": "Ann"},
    }


async def test_delta_is_taken_and_ignored(second_node: Node, connect: Connect) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="a")
    for value in (1, 2):
        status, _ = await call(second_node, "publish", channel="a", data=value, delta=True)
        assert status == 200
    assert published(connection) == [1, 2]


async def test_expiry_that_has_passed_is_an_internal_error(second_node: Node) -> None:
    params: dict[str, Any] = {"user": "17", "channel": "a", "expire_at": 5}
    told = {"code": 100, "message": "internal server error"}
    assert await call(second_node, "subscribe", **params) == (200, {"error": told})
    assert await call(second_node, "subscribe", error_mode="transport", **params) == (500, told)
