"""The server subscribes a client while something else is under way between the two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.channel_rules import CONTROL
from realtime.cluster import control
from realtime.cluster.control import CONTROL_OPTIONS, ControlMessage, SubscribeSome, Unsubscribe
from realtime.config.reader import load
from realtime.engine.base import Outgoing
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.protocol.messages import Publication
from realtime.server_api import operations
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS, SecondConnection, publish, published
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, data, eventually, subscribe_user, turns
from tests.unit.suspended_engine import ClusterEngine, SuspendedEngine


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return ClusterEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(engine: SuspendedEngine, clock: Clock) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
async def second(node: Node) -> SecondConnection:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    return connection


def begin(node: Node, channel: str, **how: Any) -> asyncio.Task[None]:
    """Begin to subscribe the user."""
    return asyncio.create_task(subscribe_user(node, "17", channel, **how))


async def test_call_while_the_client_subscribes_waits_for_its_reply(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    engine.hold("subscribe")
    subscribing = second.begin("subscribe", channel="plain:a")
    await engine.reached("subscribe")
    await begin(node, "plain:a", data=data("1"))
    await begin(node, "plain:a", data=data("2"))
    assert second.pushed == []
    engine.go_on("subscribe")
    assert await subscribing == {}
    await turns(20)
    assert [push["subscribe"]["data"] for push in second.pushed] == [2]


async def test_call_while_the_client_fails_to_subscribe_is_made_after_it(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    await publish(node, "a", 1)
    engine.hold("history")
    asks = {"channel": "a", "recover": True, "epoch": "wrong", "flag": 2}
    subscribing = second.begin("subscribe", **asks)
    await engine.reached("history")
    await begin(node, "a")
    engine.go_on("history")
    assert await subscribing == {"error": 112}
    await eventually(lambda: second.kinds("a")[:1] == ["subscribe"])
    assert second.client.session.subscriptions["a"].server_side


async def test_client_that_subscribes_while_the_server_does_is_subscribed_already(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    engine.hold("subscribe")
    call = begin(node, "plain:a")
    await engine.reached("subscribe")
    assert await second.call("subscribe", channel="plain:a") == {"error": 105}
    engine.go_on("subscribe")
    await call
    await turns()
    assert second.kinds() == ["subscribe"]


async def test_call_while_the_client_leaves_subscribes_it_anew(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    await second.call("subscribe", channel="plain:a")
    engine.hold("unsubscribe")
    leaving = second.begin("unsubscribe", channel="plain:a")
    await engine.reached("unsubscribe")
    await begin(node, "plain:a")
    assert second.pushed == []

    engine.go_on("unsubscribe")
    assert await leaving == {}
    await eventually(lambda: second.kinds() == ["subscribe"])
    await publish(node, "plain:a", 1)
    await turns()

    assert published(second) == [1]


async def test_call_behind_two_that_unsubscribe_is_the_last_one_told(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    await second.call("subscribe", channel="plain:a")
    engine.hold("unsubscribe")
    calls = [asyncio.create_task(operations.unsubscribe(node, "17", "plain:a")) for _ in range(2)]
    await engine.reached("unsubscribe")
    await turns()
    await begin(node, "plain:a")
    engine.go_on("unsubscribe")
    await asyncio.gather(*calls)
    await turns(20)
    assert second.kinds("plain:a") == ["unsubscribe", "unsubscribe", "subscribe"]


async def test_unsubscribe_while_the_server_subscribes_wins(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    engine.hold("subscribe")
    call = begin(node, "plain:a")
    await engine.reached("subscribe")
    await operations.unsubscribe(node, "17", "plain:a")
    engine.go_on("subscribe")
    await call
    await turns(20)
    assert second.kinds("plain:a") == ["subscribe", "unsubscribe"]
    assert second.client.session.subscriptions == {}


@pytest.mark.parametrize("channel", ["plain:a", ""])
async def test_unsubscribe_ends_a_call_that_waits(
    node: Node, engine: SuspendedEngine, second: SecondConnection, channel: str
) -> None:
    engine.hold("subscribe")
    subscribing = second.begin("subscribe", channel="plain:a")
    await engine.reached("subscribe")
    await begin(node, "plain:a")
    await operations.unsubscribe(node, "17", channel)
    engine.go_on("subscribe")
    assert await subscribing == {}
    await turns(20)
    assert second.kinds("plain:a") == ["unsubscribe"]
    assert second.client.session.subscriptions == {}


@pytest.mark.parametrize("channel", ["plain:a", ""])
async def test_calls_of_another_node_are_applied_in_their_order(
    node: Node, engine: ClusterEngine, second: SecondConnection, channel: str
) -> None:
    subscribe: ControlMessage = SubscribeSome(user="17", channel="plain:a", origin="another")
    unsubscribe: ControlMessage = Unsubscribe("17", channel, "another")
    for number, message in enumerate([subscribe, unsubscribe, subscribe]):
        publication = Publication(control.encode(message), uid=str(number))
        await engine.broker.publish(Outgoing(CONTROL, publication, CONTROL_OPTIONS))
    await eventually(lambda: len(second.kinds("plain:a")) == 3)
    assert second.kinds("plain:a") == ["subscribe", "unsubscribe", "subscribe"]
    await publish(node, "plain:a", 1)
    await turns()
    assert published(second) == [1]


async def test_call_while_the_client_connects_waits_for_its_reply(
    node: Node, engine: SuspendedEngine
) -> None:
    connection = SecondConnection(node)
    engine.hold("subscribe")
    token = connection_token("17", channels=["plain:b"])
    connecting = connection.begin("connect", token=token)
    await engine.reached("subscribe")
    await begin(node, "plain:a")
    assert connection.pushed == []
    engine.go_on("subscribe")
    assert set((await connecting)["subs"]) == {"plain:b"}
    await eventually(lambda: connection.kinds() == ["subscribe"])


async def test_client_that_closes_meanwhile_leaves_nothing_behind(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    engine.hold("subscribe")
    call = begin(node, "plain:a")
    await engine.reached("subscribe")
    second.client.close(None)
    await turns()
    engine.go_on("subscribe")
    await call
    await eventually(lambda: not node.hub.feeds)
    assert second.pushed == []


async def test_engine_that_fails_ends_the_connection(
    node: Node, engine: SuspendedEngine, second: SecondConnection
) -> None:
    engine.failing.add("subscribe")
    await subscribe_user(node, "17", "plain:a")
    await eventually(lambda: second.closes == [3004])
    engine.failing.clear()
