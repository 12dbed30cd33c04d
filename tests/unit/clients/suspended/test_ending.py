"""Clients that subscribe again to a channel from which they are just leaving."""

from __future__ import annotations

import pytest

from realtime.node.node import Node
from realtime.protocol.messages import (
    INSUFFICIENT_STATE,
    SERVER_UNSUBSCRIBE,
    SUBSCRIPTION_EXPIRED,
    UnsubscribeReason,
)
from tests.conftest import connection_token, subscription_token
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import eventually, turns
from tests.unit.suspended_engine import SuspendedEngine


@pytest.mark.parametrize("why", [SERVER_UNSUBSCRIBE, INSUFFICIENT_STATE])
async def test_unsubscribe_is_answered_when_the_subscription_has_ended(
    node: Node, engine: SuspendedEngine, why: UnsubscribeReason
) -> None:
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="a")
    engine.hold("presence.remove")
    node.spawn(connection.client.unsubscribe("a", why))
    await engine.reached("presence.remove")

    leaving = connection.begin("unsubscribe", channel="a")
    await turns()
    engine.go_on("presence.remove")

    assert await leaving == {}
    assert "epoch" in await connection.call("subscribe", channel="a")
    await eventually(lambda: "unsubscribe" in connection.kinds())
    assert list(connection.client.session.subscriptions) == ["a"]
    assert list(await engine.presence.get("a")) == [connection.client.id]


@pytest.mark.parametrize("why", [SERVER_UNSUBSCRIBE, INSUFFICIENT_STATE, SUBSCRIPTION_EXPIRED])
async def test_sub_refresh_is_refused_when_the_client_knows_why_the_subscription_has_ended(
    node: Node, engine: SuspendedEngine, why: UnsubscribeReason
) -> None:
    """A client that hears of the refusal first would not subscribe again."""
    connection = SecondConnection(node)
    await connection.call("connect", token=connection_token("17"))
    await connection.call("subscribe", channel="a")
    engine.hold("presence.remove")
    node.spawn(connection.client.unsubscribe("a", why))
    await engine.reached("presence.remove")

    token = subscription_token(connection.client.id, "a")
    refreshing = connection.begin("sub_refresh", channel="a", token=token)
    await turns()
    connection.messages.clear()
    engine.go_on("presence.remove")

    assert await refreshing == {"error": 103}
    push, reply = connection.messages
    assert push["push"]["unsubscribe"]["code"] == why.code
    assert "error" in reply
