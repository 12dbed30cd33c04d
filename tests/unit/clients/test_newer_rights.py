"""Clients have the rights of the newer names of channel options."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest

from realtime.auth import issue
from realtime.config.reader import load
from realtime.engine.memory import MemoryEngine
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token, subscription_token
from tests.server import SECRET
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, turns

PERMISSION_DENIED, BAD_REQUEST = 103, 107
SUBSCRIBE, UNSUBSCRIBE, PUBLISH, PRESENCE = 1, 2, 3, 4

OBSERVER_KEY = b"k" * 32
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "client_anonymous": True,
    "namespaces": [
        {"name": "closed", "allow_subscribe_for_client": False},
        {"name": "named", "channel_regex": "^[a-z]+$", "anonymous": True},
        {"name": "said", "allow_publish_for_client": True, "anonymous": True},
        {"name": "objects", "publish": True, "publication_data_format": "json_object"},
        {"name": "seen", "presence": True, "allow_presence_for_client": True},
        {"name": "joins", "join_leave": True},
        {"name": "asking", "join_leave": True, "force_push_join_leave": False},
    ],
}


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    engine = MemoryEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(OPTIONS), engine, observer_keys=[OBSERVER_KEY])
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)


async def error(connection: Connection, method: int, **params: Any) -> int | None:
    """The code of the error that a command is answered with, if it is one."""
    await connection.say(2, method, **params)
    await turns()
    reply = connection.reply(2)
    assert reply is not None
    return reply["error"]["code"] if "error" in reply else None


async def connect(node: Node, user: str = "17") -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, **({"token": connection_token(user)} if user else {}))
    await turns()
    assert connection.reply(1) is not None
    return connection


@pytest.mark.parametrize(
    ("user", "method", "params", "expected"),
    [
        pytest.param("17", SUBSCRIBE, {"channel": "closed:a"}, PERMISSION_DENIED, id="closed"),
        pytest.param("17", SUBSCRIBE, {"channel": "closed:#17"}, PERMISSION_DENIED, id="its own"),
        pytest.param("17", SUBSCRIBE, {"channel": "named:a"}, None, id="regex"),
        pytest.param("17", SUBSCRIBE, {"channel": "named:1"}, BAD_REQUEST, id="regex, other"),
        pytest.param("17", PRESENCE, {"channel": "named:1"}, BAD_REQUEST, id="regex, presence"),
        pytest.param(
            "17", PUBLISH, {"channel": "named:1", "data": 1}, BAD_REQUEST, id="regex, publish"
        ),
        pytest.param("17", PUBLISH, {"channel": "said:a", "data": 1}, None, id="publish"),
        pytest.param(
            "", PUBLISH, {"channel": "said:a", "data": 1}, PERMISSION_DENIED, id="anonymous"
        ),
        pytest.param("17", PUBLISH, {"channel": "objects:a", "data": {}}, None, id="object"),
        pytest.param(
            "17", PUBLISH, {"channel": "objects:a", "data": []}, BAD_REQUEST, id="no object"
        ),
        pytest.param("17", PRESENCE, {"channel": "seen:a"}, None, id="presence"),
        pytest.param("", PRESENCE, {"channel": "seen:a"}, PERMISSION_DENIED, id="anonymous reader"),
    ],
)
async def test_command_is_answered_by_the_newer_names(
    node: Node, user: str, method: int, params: dict[str, Any], expected: int | None
) -> None:
    assert await error(await connect(node, user), method, **params) == expected


async def test_older_client_needs_a_token_that_names_a_user_or_a_client(node: Node) -> None:
    token = jwt.encode({"channel": "$said:a"}, SECRET, algorithm="HS256")
    refused = await error(await connect(node, ""), SUBSCRIBE, channel="$said:a", token=token)
    assert refused == PERMISSION_DENIED


@pytest.mark.parametrize(("channel", "expected"), [("joins:a", [1, 1, 2]), ("asking:a", [])])
async def test_joins_and_leaves_are_for_clients_to_which_they_are_forced(
    node: Node, channel: str, expected: list[int]
) -> None:
    connection, other = await connect(node), await connect(node, "18")
    assert await error(connection, SUBSCRIBE, channel=channel) is None
    assert await error(other, SUBSCRIBE, channel=channel) is None
    await other.say(3, UNSUBSCRIBE, channel=channel)
    await turns()
    pushes = [message["result"] for message in connection.messages if "id" not in message]
    assert [push.get("type") for push in pushes] == expected


async def test_token_keeps_joins_from_a_client_that_cannot_ask(node: Node) -> None:
    connection, other = await connect(node), await connect(node, "18")
    off = {"sub": "17", "channel": "$joins:a", "override": {"join_leave": {"value": False}}}
    token = jwt.encode(off, SECRET, algorithm="HS256")
    assert await error(connection, SUBSCRIBE, channel="$joins:a", token=token) is None
    token = subscription_token(other.client.id, "$joins:a")
    assert await error(other, SUBSCRIBE, channel="$joins:a", token=token) is None
    assert [message for message in connection.messages if "id" not in message] == []


async def test_observer_sees_joins_that_are_not_forced(node: Node) -> None:
    observer, other = Connection(node), await connect(node, "18")
    token = issue.observer_token(OBSERVER_KEY, ["asking:a"], ttl=60)
    await observer.say(1, 0, token=token)
    await turns()
    assert await error(other, SUBSCRIBE, channel="asking:a") is None
    pushes = [message["result"] for message in observer.messages if "id" not in message]
    assert [push.get("type") for push in pushes] == [1]


async def test_token_opens_a_channel_that_is_closed_to_clients(node: Node) -> None:
    connection = await connect(node)
    token = subscription_token(connection.client.id, "$closed:a")
    assert await error(connection, SUBSCRIBE, channel="$closed:a", token=token) is None
