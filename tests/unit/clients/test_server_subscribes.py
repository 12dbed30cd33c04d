"""Subscriptions that the server makes while clients are connected, in both generations."""

from __future__ import annotations

import time

import pytest

from realtime.node.node import Node
from realtime.protocol.messages import StreamPosition
from tests.conftest import connection_token
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection, publish, published
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, data, eventually, position_of, subscribe_user, turns


@pytest.fixture
def node(second_node: Node) -> Node:
    return second_node


@pytest.fixture
async def second(connect: Connect) -> SecondConnection:
    return await connect()


@pytest.fixture
async def first(node: Node) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17"))
    return connection


# what clients are told


async def test_client_of_the_second_generation_is_told(
    node: Node, second: SecondConnection
) -> None:
    await publish(node, "a", 1)
    await subscribe_user(node, "17", "a", data=data('{"n":1}'))
    await publish(node, "a", 2)
    await turns()

    epoch = (await position_of(node.broker, "a")).epoch
    told, own_join, publication = second.pushed
    assert told == {
        "channel": "a",
        "subscribe": {
            "recoverable": True,
            "epoch": epoch,
            "offset": 1,
            "positioned": True,
            "data": {"n": 1},
        },
    }
    assert own_join["join"]["info"]["user"] == "17"
    assert publication["pub"]["offset"] == 2


async def test_client_of_the_first_generation_is_told(node: Node, first: Connection) -> None:
    await publish(node, "a", 1)
    await subscribe_user(node, "17", "a")
    await publish(node, "a", 2)
    await turns()

    epoch = (await position_of(node.broker, "a")).epoch
    told, publication = first.pushes
    assert told == {
        "type": 5,
        "channel": "a",
        "data": {"recoverable": True, "epoch": epoch, "offset": 1},
    }
    assert publication["data"]["offset"] == 2


async def test_subscription_without_history_is_told_with_nothing(
    node: Node, second: SecondConnection
) -> None:
    await subscribe_user(node, "17", "plain:a")
    await turns()
    assert second.pushed == [{"channel": "plain:a", "subscribe": {}}]


async def test_only_the_connection_that_is_named_is_subscribed(
    node: Node, first: Connection, second: SecondConnection
) -> None:
    await subscribe_user(node, "17", "plain:a", client=second.client.id)
    await turns()
    assert (first.pushes, second.kinds()) == ([], ["subscribe"])


async def test_info_and_overrides_are_those_of_the_call(
    node: Node, second: SecondConnection
) -> None:
    await subscribe_user(node, "17", "asking:a", info=data("5"), overrides={"force_recovery": True})
    await turns()
    present = await node.presence.get("asking:a")
    info = present[second.client.id].chan_info
    assert info is not None
    assert info.json == b"5"
    assert second.pushed[0]["subscribe"]["recoverable"] is True


# what was missed


@pytest.mark.parametrize(("since", "offset", "missed"), [(1, 1, [2, 3]), (3, 3, []), (9, 3, [])])
async def test_what_was_missed_follows_the_push(
    node: Node, second: SecondConnection, since: int, offset: int, missed: list[int]
) -> None:
    for value in (1, 2, 3):
        await publish(node, "a", value)
    epoch = (await position_of(node.broker, "a")).epoch
    await subscribe_user(node, "17", "a", since=StreamPosition(since, epoch))
    await turns()
    assert second.pushed[0]["subscribe"]["offset"] == offset
    assert published(second) == missed


async def test_what_was_missed_follows_the_push_of_the_first_generation(
    node: Node, first: Connection
) -> None:
    for value in (1, 2):
        await publish(node, "a", value)
    epoch = (await position_of(node.broker, "a")).epoch
    await subscribe_user(node, "17", "a", since=StreamPosition(1, epoch))
    await turns()
    assert [push["data"]["offset"] for push in first.pushes] == [1, 2]


# again, and the end


async def test_subscription_again_is_told_again_and_not_made_again(
    node: Node, second: SecondConnection
) -> None:
    for number in (1, 2):
        await subscribe_user(node, "17", "a", data=data(str(number)), info=data("6"))
    await publish(node, "a", 1)
    await turns()
    told = [push["subscribe"]["data"] for push in second.pushed if "subscribe" in push]
    assert (told, published(second)) == ([1, 2], [1])
    assert second.kinds().count("join") == 1


async def test_subscription_of_the_client_itself_stays_its_own(
    node: Node, second: SecondConnection, clock: Clock
) -> None:
    await second.call("subscribe", channel="a")
    await subscribe_user(node, "17", "a")
    second.client.lose_position("a")
    await eventually(lambda: "unsubscribe" in second.kinds("a"))
    assert second.closes == []


async def test_lost_position_ends_the_connection(node: Node, second: SecondConnection) -> None:
    await subscribe_user(node, "17", "a")
    second.client.lose_position("a")
    await eventually(lambda: second.closes == [3010])


@pytest.mark.parametrize(("again", "closes"), [(None, []), (5, [3006])])
async def test_subscription_expires_when_the_last_call_says(
    node: Node, second: SecondConnection, clock: Clock, again: float | None, closes: list[int]
) -> None:
    await subscribe_user(node, "17", "plain:a", expires_at=time.time() + 100)
    moment = None if again is None else time.time() + again
    await subscribe_user(node, "17", "plain:a", expires_at=moment)
    await clock.advance(50)
    await turns(20)
    assert second.closes == closes


@pytest.mark.parametrize("options", [{"client_channel_limit": 1}], indirect=True)
async def test_limit_of_channels_ends_the_connection(
    node: Node, first: Connection, second: SecondConnection
) -> None:
    await subscribe_user(node, "17", "plain:a")
    await subscribe_user(node, "17", "plain:a")
    await turns()
    assert (first.closes, second.closes) == ([], [])
    await subscribe_user(node, "17", "plain:b")
    await eventually(lambda: (first.closes, second.closes) == ([3013], [3505]))
