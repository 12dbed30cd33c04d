"""Clients of both generations and formats in one channel: every form with every other one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any

import pytest

from realtime.node.node import Node
from tests.conftest import subscription_token
from tests.unit.clients.four_forms import FORMS, Form, FormClient
from tests.unit.node.node_parts import publish
from tests.unit.parts import Clock, eventually, turns

PUBLISHER, SUBSCRIBER = "16", "17"
SUB_CLOSE_DELAY = 25
ENDS = {1: ([3006], None), 2: ([], 2501)}
"""How an expired subscription ends: the connection's codes, and the push."""
LOSSES = {1: ([3010], None), 2: ([], 2500)}
"""How a lost position ends."""

pytestmark = [
    pytest.mark.parametrize(
        ("publisher", "subscriber"),
        [
            pytest.param(one, other, id=f"{one.name} to {other.name}")
            for one, other in permutations(FORMS, 2)
        ],
    ),
    pytest.mark.parametrize("options", [{"publish": True}], ids=[""], indirect=True),
]

Open = Callable[[Form, str], Awaitable[FormClient]]


@pytest.fixture
def node(second_node: Node) -> Node:
    return second_node


@pytest.fixture
def connected(node: Node) -> Open:
    """Connect a client: `await connected(form, user)`."""

    async def connected(form: Form, user: str) -> FormClient:
        client = FormClient(node, form)
        await client.connect(user)
        return client

    return connected


async def test_publication_join_and_leave_reach_the_other(
    connected: Open, publisher: Form, subscriber: Form
) -> None:
    hearing = await connected(subscriber, SUBSCRIBER)
    await hearing.call("subscribe", channel="a")
    speaking = await connected(publisher, PUBLISHER)
    await speaking.call("subscribe", channel="a")

    await speaking.call("publish", channel="a", data={"text": "é"})
    present = (await hearing.call("presence", channel="a"))["presence"]
    await speaking.call("unsubscribe", channel="a")
    await turns()

    assert {info["user"] for info in present.values()} == {PUBLISHER, SUBSCRIBER}
    assert hearing.heard == [
        ("join", SUBSCRIBER),
        ("join", PUBLISHER),
        ("publication", {"text": "é"}, 1),
        ("leave", PUBLISHER),
    ]


async def test_publications_of_an_absence_are_recovered(
    connected: Open, publisher: Form, subscriber: Form
) -> None:
    speaking = await connected(publisher, PUBLISHER)
    before = await connected(subscriber, SUBSCRIBER)
    epoch = (await before.call("subscribe", channel="a"))["epoch"]
    await speaking.call("publish", channel="a", data=1)
    await turns()
    assert before.publications() == [1]

    before.client.close(None)
    for value in (2, 3):
        await speaking.call("publish", channel="a", data=value)
    after = await connected(subscriber, SUBSCRIBER)
    result = await after.call("subscribe", channel="a", recover=True, offset=1, epoch=epoch)
    await speaking.call("publish", channel="a", data=4)
    await turns()

    assert result["recovered"]
    # the first generation has the newest one first
    assert sorted(each["offset"] for each in result["publications"]) == [2, 3]
    assert sorted(each["data"] for each in result["publications"]) == [2, 3]
    assert after.publications() == [4]


async def test_expired_subscription_ends_beside_one_that_goes_on(
    connected: Open, clock: Clock, publisher: Form, subscriber: Form
) -> None:
    going_on = await connected(publisher, PUBLISHER)
    ending = await connected(subscriber, SUBSCRIBER)
    for client, ttl in ((going_on, 10_000), (ending, 60)):
        token = subscription_token(client.id, "$a", ttl=ttl)
        await client.call("subscribe", channel="$a", token=token)

    await clock.advance(61 + SUB_CLOSE_DELAY)
    await eventually(lambda: ("leave", SUBSCRIBER) in going_on.heard)
    await going_on.call("publish", channel="$a", data=1)
    await turns()

    closes, code = ENDS[subscriber.generation]
    assert (ending.closes, _unsubscribe_codes(ending)) == (closes, [code] if code else [])
    assert ending.publications() == []
    assert (going_on.publications(), going_on.closes) == ([1], [])


async def test_lost_stream_ends_each_in_its_way_and_both_begin_again(
    connected: Open, node: Node, publisher: Form, subscriber: Form
) -> None:
    clients = [await connected(publisher, PUBLISHER), await connected(subscriber, SUBSCRIBER)]
    epochs = [(await client.call("subscribe", channel="a"))["epoch"] for client in clients]
    await _lose_stream(node)
    for client in clients:
        closes, code = LOSSES[client.form.generation]
        ended: list[Any] = [closes, [code] if code else []]
        await eventually(lambda: [client.closes, _unsubscribe_codes(client)] == ended)  # noqa: B023

    for number, client in enumerate(clients):
        if client.closes:
            clients[number] = client = await connected(client.form, client.user)
        result = await client.call(
            "subscribe", channel="a", recover=True, offset=1, epoch=epochs[number]
        )
        assert not result.get("recovered")
        client.heard.clear()
    await clients[0].call("publish", channel="a", data="after")
    await turns()

    assert [client.publications() for client in clients] == [["after"], ["after"]]


def _unsubscribe_codes(client: FormClient) -> list[int]:
    return [heard[1] for heard in client.heard if heard[0] == "unsubscribe"]


async def _lose_stream(node: Node) -> None:
    """Publish where this node does not hear, and remove that from history."""
    await publish(node, node.config.channel, 1)
    await node.broker.unsubscribe("a")
    for value in range(2, 20):
        await publish(node, node.config.channel, value)
    await node.broker.remove_history("a")
    await node.broker.subscribe("a")
    await publish(node, node.config.channel, 20)
