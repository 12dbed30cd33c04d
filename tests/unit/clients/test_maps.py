"""Maps: clients read all entries, and get every change after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realtime.clients.maps import FLOW_SECONDS
from realtime.node.node import Node
from tests.unit.clients.conftest import Connect
from tests.unit.clients.map_parts import (
    MAPS,
    OPTIONS,
    STREAM,
    Reader,
    entries,
    fill,
    put,
    remove,
)
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import Clock, eventually, turns

DENIED, DUPLICATE, BAD_REQUEST, NOT_AVAILABLE, LOST = 103, 105, 107, 108, 112
SLOW = 3008

Open = Callable[[str], Any]


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of `second_node`, with maps."""
    return OPTIONS | dict(getattr(request, "param", {}))


@pytest.fixture
def reader(connect: Connect) -> Open:
    """A client that reads a map: `await reader("map:a")`."""

    async def reader(channel: str) -> Reader:
        return Reader(await connect(), channel)

    return reader


def is_clean(node: Node, channel: str) -> bool:
    """Return whether nothing of a subscription is left."""
    return channel not in node.hub.feeds and node.subscriptions.count == 0


@pytest.mark.parametrize("channel", MAPS)
async def test_a_small_map_takes_one_request(reader: Open, second_node: Node, channel: str) -> None:
    await fill(second_node, channel, 100)
    one = await reader(channel)
    await one.read()
    assert one.requests == 1
    assert one.last["type"] == 1
    assert one.now == await entries(second_node, channel)


@pytest.mark.parametrize("channel", MAPS)
async def test_changes_follow(reader: Open, second_node: Node, channel: str) -> None:
    await fill(second_node, channel, 3)
    one = await reader(channel)
    await one.read()
    await put(second_node, channel, "new", 7)
    await put(second_node, channel, "k0001", 8)
    await remove(second_node, channel, "k0002")
    assert one.now == {"k0000": 0, "k0001": 8, "new": 7}
    *_, last = one.connection.pushed
    assert (last["pub"]["key"], last["pub"]["removed"]) == ("k0002", True)
    assert ("offset" in last["pub"]) == (channel != "brief:a")


async def test_the_reply_has_the_position_of_the_map(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 2)
    one = await reader("map:a")
    await one.read()
    epoch = (await second_node.broker.history("map:a", limit=0)).position.epoch
    assert {name: one.last[name] for name in one.last if name != "state"} == {
        "recoverable": True,
        "positioned": True,
        "epoch": epoch,
        "offset": 2,
        "type": 1,
    }
    assert one.last["state"] == [
        {"data": 0, "offset": 1, "key": "k0000"},
        {"data": 1, "offset": 2, "key": "k0001"},
    ]


async def test_an_ephemeral_map_has_no_position(reader: Open, second_node: Node) -> None:
    await put(second_node, "brief:a", "k", 1)
    one = await reader("brief:a")
    await one.read()
    assert one.last == {"type": 1, "state": [{"data": 1, "key": "k"}]}


@pytest.mark.parametrize("channel", MAPS)
async def test_pages_with_changes_between_them(
    reader: Open, second_node: Node, channel: str
) -> None:
    await fill(second_node, channel, 250)
    one = await reader(channel)
    await one.begin()
    number = 1000
    while one.last.get("phase"):
        assert one.last["phase"] == 2
        assert len(one.last["state"]) <= 100
        for _ in range(20):
            await put(second_node, channel, f"k{number % 250:04}", number)
            number += 37
        await remove(second_node, channel, f"k{number % 250:04}")
        await put(second_node, channel, f"new{number}", number)
        await one.go_on()
    assert one.requests == 3
    assert one.now == await entries(second_node, channel)


async def test_changes_between_pages_may_be_more_than_history_keeps(
    reader: Open, second_node: Node
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    for number in range(100):
        await put(second_node, "map:a", "hot", number)
    await one.go_on()
    assert one.now == await entries(second_node, "map:a")


async def test_all_pages_repeat_the_position_of_the_first(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin()
    first = one.last["offset"], one.last["epoch"]
    await put(second_node, "map:a", "z", 1)
    await one.go_on()
    assert (one.last["offset"], one.last["epoch"], one.last["phase"]) == (*first, 2)
    await one.go_on()
    assert one.last["offset"] == first[0] + 1
    assert [each["key"] for each in one.last["publications"]] == ["z"]
    assert "z" not in [entry["key"] for entry in one.last["state"]]


@pytest.mark.parametrize(("limit", "size"), [(1, 100), (150, 150), (-5, 100), (99999, 250)])
async def test_the_size_of_a_page_has_bounds(
    reader: Open, second_node: Node, limit: int, size: int
) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin(limit=limit)
    assert len(one.last["state"]) == size


async def test_a_page_of_large_entries_ends_early(
    reader: Open, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime.clients.maps.PAGE_BYTES", 1000)
    await fill(second_node, "map:a", 30)
    one = await reader("map:a")
    await one.begin()
    assert len(one.last["state"]) < 10
    while one.last.get("phase"):
        await one.go_on()
    assert one.now == await entries(second_node, "map:a")


async def test_a_client_comes_back_to_its_position(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 3)
    one = await reader("map:a")
    await one.read()
    await one.connection.call("unsubscribe", channel="map:a")
    await put(second_node, "map:a", "k0000", 9)
    await remove(second_node, "map:a", "k0001")
    await one.recover()
    assert (one.last["was_recovering"], one.last["recovered"]) == (True, True)
    assert (one.last["offset"], one.last.get("state", [])) == (5, [])
    assert one.now == await entries(second_node, "map:a") == {"k0000": 9, "k0002": 2}


@pytest.mark.parametrize("wrong", [{"epoch": "other"}, {"offset": 99}])
async def test_a_position_of_another_stream_is_lost(
    reader: Open, second_node: Node, wrong: dict[str, Any]
) -> None:
    await fill(second_node, "map:a", 3)
    one = await reader("map:a")
    await one.read()
    await one.connection.call("unsubscribe", channel="map:a")
    await put(second_node, "map:a", "k0000", 9)
    await one.recover(**wrong)
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


async def test_more_changes_than_history_keeps_are_lost(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 1)
    one = await reader("map:a")
    await one.read()
    await one.connection.call("unsubscribe", channel="map:a")
    for number in range(21):
        await put(second_node, "map:a", "k", number)
    await one.recover()
    assert one.last == {"error": LOST}


async def test_an_ephemeral_map_cannot_be_recovered(reader: Open, second_node: Node) -> None:
    one = await reader("brief:a")
    one.last = {"epoch": "e", "offset": 1}
    await one.recover()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "brief:a")


# mistakes


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"channel": "plain:a", "type": 1, "phase": 2}, DENIED),
        ({"channel": "map:a", "type": 2, "phase": 2}, DENIED),
        ({"channel": "map:a", "type": 4, "phase": 2}, DENIED),
        ({"channel": "map:a", "type": -1, "phase": 2}, DENIED),
        ({"channel": "map:a", "type": 1, "phase": 0}, BAD_REQUEST),
        ({"channel": "map:a", "type": 1, "phase": 3}, BAD_REQUEST),
        ({"channel": "map:a", "type": 1, "phase": 2, "cursor": "k"}, DENIED),
        ({"channel": "plain:a", "type": 1, "phase": 2, "tf": {}}, DENIED),
    ],
)
async def test_a_request_that_is_none(
    connect: Connect, second_node: Node, params: dict[str, Any], code: int
) -> None:
    connection = await connect()
    assert await connection.call("subscribe", **params) == {"error": code}
    assert is_clean(second_node, params["channel"])


async def test_a_cursor_that_the_server_did_not_give_ends_the_flow(
    reader: Open, second_node: Node
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await one.go_on(cursor="k0001")
    assert one.last == {"error": DENIED}
    assert is_clean(second_node, "map:a")


@pytest.mark.parametrize("wrong", [{"epoch": "other"}, {"offset": 149}])
async def test_a_page_of_another_position_ends_the_flow(
    reader: Open, second_node: Node, wrong: dict[str, Any]
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await one.go_on(**wrong)
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")
    await one.read()
    assert one.now == await entries(second_node, "map:a")


async def test_a_map_that_begins_anew_between_pages(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await second_node.broker.renew_epoch("map:a", one.last["epoch"])
    await one.go_on()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


@pytest.mark.parametrize("params", [{"type": 1, "phase": 2}, {"type": 1, "phase": STREAM}, {}])
async def test_a_second_flow_is_refused(
    reader: Open, second_node: Node, params: dict[str, Any]
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    twice = await one.connection.call("subscribe", channel="map:a", **params)
    assert twice == {"error": DUPLICATE}
    await one.go_on()
    again = await one.connection.call("subscribe", channel="map:a", **params)
    assert again == {"error": DUPLICATE}
    assert one.now == await entries(second_node, "map:a")


async def test_a_flow_is_one_of_the_channels_of_a_client(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    assert one.connection.client.num_channels == 1
    await one.go_on()
    assert one.connection.client.num_channels == 1


# the end of a flow


async def test_a_client_unsubscribes_between_pages(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    assert await one.connection.call("unsubscribe", channel="map:a") == {}
    assert is_clean(second_node, "map:a")
    await one.go_on(cursor="k0099")
    assert one.last == {"error": DENIED}


@pytest.mark.parametrize("channel", ["", "map:a"])
async def test_the_server_unsubscribes_between_pages(
    reader: Open, second_node: Node, channel: str
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await second_node.unsubscribe_user("17", channel)
    await turns()
    [push] = one.connection.pushed
    assert (push["channel"], push["unsubscribe"]["code"]) == ("map:a", 2000)
    assert is_clean(second_node, "map:a")


async def test_a_client_closes_between_pages(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    one.connection.client.close(None)
    await turns()
    assert is_clean(second_node, "map:a")


async def test_a_client_that_asks_for_no_page_is_slow(
    reader: Open, second_node: Node, clock: Clock
) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin()
    await clock.advance(FLOW_SECONDS - 1)
    await one.go_on()
    await clock.advance(0.9)
    assert not one.connection.closes
    await clock.advance(0.2)
    await eventually(lambda: one.connection.closes)
    assert one.connection.closes == [SLOW]
    assert is_clean(second_node, "map:a")


async def test_a_client_that_is_live_is_not_slow(
    reader: Open, second_node: Node, clock: Clock
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.read()
    await clock.advance(FLOW_SECONDS + 1)
    assert not one.connection.closes
    await put(second_node, "map:a", "z", 1)
    assert one.now["z"] == 1


# filters, limits and other readers

RED = {"key": "team", "cmp": "eq", "val": "red"}


async def test_a_filter_is_for_state_and_changes(reader: Open, second_node: Node) -> None:
    red, blue = {"tags": {"team": "red"}}, {"tags": {"team": "blue"}}
    await put(second_node, "map:a", "a", 1, **red)
    await put(second_node, "map:a", "b", 2, **blue)
    one = await reader("map:a")
    await one.read(tf=RED)
    assert one.now == {"a": 1}
    await put(second_node, "map:a", "c", 3, **red)
    await put(second_node, "map:a", "d", 4, **blue)
    assert one.now == {"a": 1, "c": 3}
    await remove(second_node, "map:a", "a")
    assert one.now == {"c": 3}
    await one.connection.call("unsubscribe", channel="map:a")
    await put(second_node, "map:a", "e", 5, **red)
    await put(second_node, "map:a", "f", 6, **blue)
    await remove(second_node, "map:a", "c")
    await one.recover(tf=RED)
    assert one.now == {"e": 5}


@pytest.mark.parametrize("options", [{"client_recovery_max_size": 10_000}], indirect=True)
async def test_state_counts_as_recovery(reader: Open, second_node: Node) -> None:
    await fill(second_node, "map:a", 90)
    one = await reader("map:a")
    await one.begin()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


async def test_a_plain_subscriber_gets_changes(connect: Connect, second_node: Node) -> None:
    await put(second_node, "map:a", "a", 1)
    connection = await connect()
    assert "state" not in await connection.call("subscribe", channel="map:a")
    await put(second_node, "map:a", "b", 2)
    [push] = connection.pushed
    assert (push["pub"]["key"], push["pub"]["data"]) == ("b", 2)


async def test_the_right_to_subscribe_is_asked_once(
    connect: Connect, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def decide(client: Any, attempt: Any, subscription: Any) -> tuple[None, None]:
        asked.append(attempt.channel)
        return None, None

    monkeypatch.setattr("realtime.clients.commands.subscription.decide", decide)
    await fill(second_node, "map:a", 250)
    one = Reader(await connect(), "map:a")
    await one.read()
    assert (one.requests, asked) == (3, ["map:a"])


async def test_who_may_not_subscribe_may_not_read(connect: Connect, second_node: Node) -> None:
    connection: SecondConnection = await connect("")
    one = Reader(connection, "map:a")
    await one.begin()
    assert one.last == {"error": DENIED}
