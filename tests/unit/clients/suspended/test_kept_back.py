"""Publications that come while a client subscribes, and that history does not keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.cluster.member import NOT_KEPT
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.server_api import operations
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS, SecondConnection, publish, published
from tests.unit.node.node_parts import Connection
from tests.unit.parts import data, subscribe_user, turns
from tests.unit.suspended_engine import SuspendedEngine


@pytest.fixture
async def node(engine: SuspendedEngine) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), engine)
    await made.start()
    yield made
    await made.stop()


async def only_deliver(node: Node, channel: str, value: int) -> None:
    await node.publish(channel, data(str(value)), NOT_KEPT)


@pytest.mark.parametrize(
    ("channel", "asks", "recovered"),
    [
        pytest.param("plain:a", {}, [], id="no history"),
        pytest.param("kept:a", {}, [], id="no position"),
        pytest.param("kept:a", {"positioned": True}, [], id="a position"),
        pytest.param("a", {}, [], id="recovery not asked for"),
        pytest.param("a", {"recover": True}, [1], id="recovered"),
        pytest.param("a", {"recover": True, "epoch": "wrong"}, [], id="not recovered"),
    ],
)
async def test_they_follow_the_reply(
    node: Node, engine: SuspendedEngine, channel: str, asks: dict[str, Any], recovered: list[int]
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await publish(node, channel, 1)
    engine.hold_answer("subscribe")
    subscribing = connection.begin("subscribe", channel=channel, **asks)
    await engine.reached("subscribe")
    await only_deliver(node, channel, 2)
    await only_deliver(node, channel, 3)
    assert connection.pushed == []

    engine.go_on("subscribe")
    result = await subscribing
    await publish(node, channel, 4)
    await turns()

    assert [each["data"] for each in result.get("publications", [])] == recovered
    assert published(connection) == [2, 3, 4]


async def test_they_follow_the_reply_of_the_first_generation(
    node: Node, engine: SuspendedEngine
) -> None:
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17"))
    engine.hold_answer("subscribe")
    subscribing = connection.subscribe()
    await engine.reached("subscribe")
    await only_deliver(node, "a", 2)
    engine.go_on("subscribe")
    await subscribing
    await turns()
    assert connection.reply(2) is not None
    assert [push["data"]["data"] for push in connection.pushes] == [2]


async def test_they_follow_the_reply_to_connect(node: Node, engine: SuspendedEngine) -> None:
    connection = SecondConnection(node)
    engine.hold_answer("subscribe")
    connecting = connection.begin("connect", token=connection_token("17", channels=["a"]))
    await engine.reached("subscribe")
    await only_deliver(node, "a", 2)
    engine.go_on("subscribe")
    assert "a" in (await connecting)["subs"]
    await turns()
    assert published(connection) == [2]


async def test_they_follow_the_push_of_a_subscription_by_the_server(
    node: Node, engine: SuspendedEngine
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    engine.hold_answer("subscribe")
    call = asyncio.create_task(subscribe_user(node, "17", "a"))
    await engine.reached("subscribe")
    await only_deliver(node, "a", 2)
    engine.go_on("subscribe")
    await call
    await turns()
    assert connection.kinds()[:2] == ["subscribe", "pub"]
    assert published(connection) == [2]


async def test_client_that_is_unsubscribed_meanwhile_gets_none(
    node: Node, engine: SuspendedEngine
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    engine.hold_answer("subscribe")
    subscribing = connection.begin("subscribe", channel="a")
    await engine.reached("subscribe")
    await only_deliver(node, "a", 2)
    await operations.unsubscribe(node, "17", "a")
    engine.go_on("subscribe")
    await subscribing
    await turns()
    assert connection.kinds("a") == ["unsubscribe"]
