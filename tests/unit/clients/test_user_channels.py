"""Subscriptions of a user: one limit over all connections at a node."""

from __future__ import annotations

import asyncio

import pytest

from realtime.cluster.control import ServerSubscription
from realtime.node.node import Node
from tests.conftest import connection_token
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.node.node_parts import Connection
from tests.unit.parts import eventually, turns

LIMIT, LIMIT_EXCEEDED, ALREADY_SUBSCRIBED = 3, 106, 105

pytestmark = pytest.mark.parametrize("options", [{"user_channel_limit": LIMIT}], indirect=True)


async def subscribe(connection: Connection, *channels: str) -> list[int]:
    """The codes of the replies, 0 for success."""
    connection.messages.clear()
    for channel in channels:
        await connection.say(2, 1, channel=channel)
        await turns()
    replies = [message for message in connection.messages if message.get("id") == 2]
    return [reply.get("error", {}).get("code", 0) for reply in replies]


async def connected(node: Node, user: str) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token(user))
    await eventually(lambda: connection.reply(1) is not None)
    return connection


async def test_connections_of_a_user_share_the_limit(second_node: Node) -> None:
    one, other, stranger = [await connected(second_node, user) for user in ("17", "17", "18")]
    answers = [
        await subscribe(one, "plain:a", "plain:b"),
        # the same channel counts for each connection
        await subscribe(other, "plain:a", "plain:c"),
        await subscribe(one, "plain:d"),
        await subscribe(stranger, "plain:a", "plain:b", "plain:c", "plain:d"),
    ]
    assert answers == [[0, 0], [0, LIMIT_EXCEEDED], [LIMIT_EXCEEDED], [0, 0, 0, LIMIT_EXCEEDED]]
    assert one.closes == other.closes == []


@pytest.mark.parametrize("ends", ["unsubscribe", "close"])
async def test_subscription_that_ends_makes_room(second_node: Node, ends: str) -> None:
    one, other = [await connected(second_node, "17") for _ in range(2)]
    await subscribe(one, "plain:a", "plain:b", "plain:c")
    full = await subscribe(other, "plain:a")
    if ends == "close":
        one.client.close(None)
    else:
        await one.say(3, 2, channel="plain:b")
        await turns()
    assert (full, await subscribe(other, "plain:a")) == ([LIMIT_EXCEEDED], [0])


async def test_channels_that_a_connect_asks_for_are_left_out(
    second_node: Node,
) -> None:
    one = await connected(second_node, "17")
    await subscribe(one, "plain:a")
    asking = SecondConnection(second_node)
    names = [f"plain:{letter}" for letter in "abcd"]
    await asking.call("connect", token=connection_token("17"), subs={name: {} for name in names})
    assert list(asking.client.session.subscriptions) == names[: LIMIT - 1]
    assert asking.closes == []


async def test_site_may_subscribe_a_user_beyond_the_limit(second_node: Node) -> None:
    one = await connected(second_node, "17")
    await subscribe(one, "plain:a", "plain:b", "plain:c")
    await second_node.hub.connections("17")[0].subscribe(ServerSubscription("ours:a"))
    await turns()
    assert "ours:a" in one.client.session.subscriptions


async def test_refused_and_repeated_subscribes_take_no_room(second_node: Node) -> None:
    one = await connected(second_node, "17")
    refused = await subscribe(one, *["unknown:a", "$plain:a"] * LIMIT)
    subscribed = await subscribe(one, "plain:a", "plain:a", "plain:b", "plain:a", "plain:c")
    assert 0 not in refused
    assert [code for code in subscribed if code != ALREADY_SUBSCRIBED] == [0] * LIMIT
    assert await subscribe(one, "plain:d") == [LIMIT_EXCEEDED]


async def test_subscribes_that_come_at_once_share_the_limit(second_node: Node) -> None:
    connections = [await connected(second_node, "17") for _ in range(4)]
    await asyncio.gather(
        *(
            connection.say(2, 1, channel=f"plain:{number}")
            for number in range(LIMIT)
            for connection in connections
        )
    )
    await turns()
    made = [len(connection.client.session.subscriptions) for connection in connections]
    assert sum(made) == LIMIT
