"""Presence maps, and entries that go with a subscription, as clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.channel_rules import map_type, options_of
from realtime.node.node import Node
from tests.conftest import subscription_token
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import turns

DENIED = {"error": 103}
STATE = {"phase": 2}
MAPS: list[dict[str, Any]] = [
    {"name": "clients", "map": "recoverable", "map_key": "client"},
    {"name": "users", "map": "ephemeral", "map_key": "user"},
]


def rooms(**options: Any) -> dict[str, Any]:
    """The options of a service whose rooms have presence maps."""
    room = {"name": "room", "presence": True, "presence_maps": ["clients", "users"], **options}
    own = {
        "map_key": "client",
        "map_publish": "subscriber",
        "map_remove_on_unsubscribe": True,
    }
    return {
        "namespaces": [
            room,
            *MAPS,
            {"name": "other", "presence": True},
            {"name": "own", "map": "recoverable", **own},
            {"name": "passing", "map": "ephemeral", **own},
        ]
    }


with_rooms = pytest.mark.parametrize("options", [rooms()], indirect=True)


def keys(result: dict[str, Any]) -> list[str]:
    return [entry["key"] for entry in result.get("state", [])]


def changes(connection: SecondConnection, channel: str) -> list[tuple[str, bool]]:
    """The keys of the pushed changes of a map, and whether they were removed."""
    pubs = [
        push["pub"] for push in connection.pushed if push["channel"] == channel and "pub" in push
    ]
    return [(pub["key"], pub.get("removed", False)) for pub in pubs]


async def see(connection: SecondConnection, channel: str, kind: int) -> dict[str, Any]:
    return await connection.call("subscribe", channel=channel, type=kind, **STATE)


@pytest.fixture
async def anna(connect: Connect) -> SecondConnection:
    connection = await connect("anna")
    await connection.call("subscribe", channel="room:1")
    return connection


@pytest.fixture
async def bert(connect: Connect) -> SecondConnection:
    connection = await connect("bert")
    await connection.call("subscribe", channel="room:1")
    return connection


@with_rooms
async def test_subscribers_of_a_channel_see_its_clients(
    anna: SecondConnection, bert: SecondConnection, connect: Connect
) -> None:
    result = await see(anna, "clients:room:1", 2)

    assert result["type"] == 1
    assert keys(result) == sorted([anna.client.id, bert.client.id])
    by_key = {entry["key"]: entry for entry in result["state"]}
    assert by_key[bert.client.id]["info"] == {"user": "bert", "client": bert.client.id}
    carl = await connect("carl")
    await carl.call("subscribe", channel="room:1")
    await bert.call("unsubscribe", channel="room:1")
    assert changes(anna, "clients:room:1") == [(carl.client.id, False), (bert.client.id, True)]


@with_rooms
async def test_subscribers_of_a_channel_see_its_users(
    anna: SecondConnection, bert: SecondConnection, connect: Connect
) -> None:
    result = await see(anna, "users:room:1", 3)
    assert keys(result) == ["anna", "bert"]
    again = await connect("bert")
    await again.call("subscribe", channel="room:1")
    await bert.call("unsubscribe", channel="room:1")
    assert changes(anna, "users:room:1") == []


@with_rooms
@pytest.mark.parametrize("channel", ["clients:room:1", "users:room:1"])
async def test_others_may_not(connect: Connect, anna: SecondConnection, channel: str) -> None:
    other = await connect("other")
    kind = 2 if channel.startswith("clients") else 3
    for wanted in (0, kind):
        assert await other.call("subscribe", channel=channel, type=wanted, phase=2) == DENIED
    await other.call("subscribe", channel="room:2")
    assert await see(other, channel, kind) == DENIED
    for wrong in {1, 2, 3, 4} - {kind}:
        assert await see(anna, channel, wrong) == DENIED
    assert "state" in await see(anna, channel, kind)


@with_rooms
async def test_a_plain_subscriber_gets_the_changes(
    anna: SecondConnection, bert: SecondConnection
) -> None:
    assert "error" not in await anna.call("subscribe", channel="clients:room:1")
    await bert.call("unsubscribe", channel="room:1")
    assert changes(anna, "clients:room:1") == [(bert.client.id, True)]


@with_rooms
async def test_types_of_channels(second_node: Node) -> None:
    config = second_node.config
    types = {
        "room:1": 0,
        "clients:room:1": 2,
        "users:room:1": 3,
        "clients:$room:1": 2,
        "$clients:room:1": 1,
        "clients:other:1": 1,
        "clients:clients:room:1": 1,
        "clients:unknown:1": 1,
        "clients:": 1,
        "own:1": 1,
    }
    assert {
        channel: map_type(channel, options_of(channel, config), config) for channel in types
    } == types


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (rooms(presence_disable_for_client=True), True),
        (rooms(allow_presence_for_subscriber=False), True),
        (rooms(allow_presence_for_client=True), False),
    ],
    indirect=["options"],
)
async def test_the_right_is_that_to_presence(
    anna: SecondConnection, connect: Connect, expected: bool
) -> None:
    other = await connect("other")
    refused = "error" in await other.call("presence", channel="room:1")
    assert ("error" in await see(other, "clients:room:1", 2)) is refused
    assert ("error" in await anna.call("presence", channel="room:1")) is expected
    assert ("error" in await see(anna, "clients:room:1", 2)) is expected


@with_rooms
async def test_a_token_opens_a_presence_map(connect: Connect, anna: SecondConnection) -> None:
    other = await connect("other")
    token = subscription_token(other.client.id, "clients:room:1", user="other")
    result = await other.call("subscribe", channel="clients:room:1", type=2, phase=2, token=token)
    assert keys(result) == [anna.client.id]


@with_rooms
async def test_the_map_ends_with_the_channel(anna: SecondConnection, second_node: Node) -> None:
    for channel, kind in (("clients:room:1", 2), ("users:room:1", 3)):
        await see(anna, channel, kind)
    await second_node.unsubscribe_user("anna", "room:1")
    await turns(50)

    assert anna.kinds("clients:room:1") == ["pub", "unsubscribe"]  # its own removal
    assert anna.kinds("users:room:1") == ["unsubscribe"]
    codes = {
        push["channel"]: push["unsubscribe"]["code"]
        for push in anna.pushed
        if "unsubscribe" in push
    }
    assert codes == {"room:1": 2000, "clients:room:1": 2500, "users:room:1": 2500}
    assert await see(anna, "clients:room:1", 2) == DENIED


@pytest.mark.parametrize("options", [rooms(allow_presence_for_client=True)], indirect=True)
async def test_the_map_stays_where_any_client_may_see_it(anna: SecondConnection) -> None:
    await see(anna, "clients:room:1", 2)
    await anna.call("unsubscribe", channel="room:1")
    await turns(20)
    assert anna.kinds("clients:room:1") == ["pub"]


@with_rooms
@pytest.mark.parametrize("channel", ["own:1", "passing:1"])
async def test_a_client_gets_the_removal_of_its_entry_before_the_reply(
    anna: SecondConnection, bert: SecondConnection, channel: str
) -> None:
    for connection in (anna, bert):
        await see(connection, channel, 1)
        await connection.call("publish", channel=channel, type=1, data=1)
    number = len(anna.messages)

    assert await anna.call("unsubscribe", channel=channel) == {}

    push, reply = anna.messages[number:]
    pub = push["push"]["pub"]
    assert (pub["key"], pub["removed"]) == (anna.client.id, True)
    assert "unsubscribe" in reply
    last = [(anna.client.id, True)]
    assert changes(anna, channel)[-1:] == changes(bert, channel)[-1:] == last
    bert.client.close(None)
    await turns(50)
    assert keys(await see(anna, channel, 1)) == []


@with_rooms
async def test_ephemeral_maps_are_read_again_after_an_interruption(
    anna: SecondConnection, bert: SecondConnection, second_node: Node
) -> None:
    await see(anna, "users:room:1", 3)
    await see(anna, "clients:room:1", 2)
    await bert.call("subscribe", channel="users:room:1")
    second_node.on_interrupted(lambda channel: True)
    second_node.on_resumed(lambda channel: True)
    await turns(50)
    assert anna.kinds("users:room:1") == ["unsubscribe"]
    assert keys(await see(anna, "users:room:1", 3)) == ["anna", "bert"]
    assert bert.kinds("users:room:1") == anna.kinds("clients:room:1") == []
