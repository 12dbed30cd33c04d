"""Maps: requests that are refused, how the reading of pages ends, filters, and other readers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime.clients.maps import FLOW_SECONDS, PAGE_SECONDS
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from tests.unit.clients.conftest import Connect, OpenMap
from tests.unit.clients.map_parts import (
    OPTIONS,
    STREAM,
    Reader,
    entries,
    fill,
    is_clean,
    put,
    remove,
)
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import Clock, eventually, turns

MORE_OPTIONS = OPTIONS

DENIED, DUPLICATE, BAD_REQUEST, LOST = 103, 105, 107, 112
SLOW = 3008


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
    reader: OpenMap, second_node: Node
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await one.go_on(cursor="k0001")
    assert one.last == {"error": DENIED}
    assert is_clean(second_node, "map:a")


@pytest.mark.parametrize("wrong", [{"epoch": "other"}, {"offset": 149}])
async def test_a_page_of_another_position_ends_the_flow(
    reader: OpenMap, second_node: Node, wrong: dict[str, Any]
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await one.go_on(**wrong)
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")
    await one.read()
    assert one.now == await entries(second_node, "map:a")


async def test_a_map_that_begins_anew_between_pages(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await second_node.broker.renew_epoch("map:a", one.last["epoch"])
    await one.go_on()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


@pytest.mark.parametrize("params", [{"type": 1, "phase": 2}, {"type": 1, "phase": STREAM}, {}])
async def test_a_second_flow_is_refused(
    reader: OpenMap, second_node: Node, params: dict[str, Any]
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


async def test_a_flow_is_one_of_the_channels_of_a_client(
    reader: OpenMap, second_node: Node
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    assert one.connection.client.num_channels == 1
    await one.go_on()
    assert one.connection.client.num_channels == 1


# the end of a flow


async def test_a_client_unsubscribes_between_pages(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    assert await one.connection.call("unsubscribe", channel="map:a") == {}
    assert is_clean(second_node, "map:a")
    await one.go_on(cursor="k0099")
    assert one.last == {"error": DENIED}


@pytest.mark.parametrize("channel", ["", "map:a"])
async def test_the_server_unsubscribes_between_pages(
    reader: OpenMap, second_node: Node, channel: str
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    await second_node.unsubscribe_user("17", channel)
    await turns()
    [push] = one.connection.pushed
    assert (push["channel"], push["unsubscribe"]["code"]) == ("map:a", 2000)
    assert is_clean(second_node, "map:a")


async def test_a_client_begins_anew_while_the_server_unsubscribes(
    reader: OpenMap, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(second_node, "seen:a", 150)
    one = await reader("seen:a")
    await one.begin()
    asked, go_on = asyncio.Event(), asyncio.Event()
    remove_presence = second_node.presence.remove

    async def slow(channel: str, client: str) -> None:
        asked.set()
        await go_on.wait()
        await remove_presence(channel, client)

    monkeypatch.setattr(second_node.presence, "remove", slow)
    ending = asyncio.create_task(second_node.unsubscribe_user("17", "seen:a"))
    await asked.wait()
    await one.begin()
    assert one.last == {"error": DUPLICATE}
    go_on.set()
    await ending
    await turns()
    await one.read()
    await put(second_node, "seen:a", "k0000", 7)
    assert one.now == await entries(second_node, "seen:a")
    assert set(await second_node.presence.get("seen:a")) == {one.connection.client.id}


async def test_a_client_closes_between_pages(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    one.connection.client.close(None)
    await turns()
    assert is_clean(second_node, "map:a")


async def test_a_stream_that_is_lost_between_pages(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    second_node.subscriptions._lose_positions(second_node.hub.feeds["map:a"])
    await turns()
    [push] = one.connection.pushed
    assert push["unsubscribe"]["code"] == 2500
    assert not one.connection.closes
    assert is_clean(second_node, "map:a")


class HeldPages:
    """The pages of a node, which wait until they may be read."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        assert node.maps is not None
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self._page = node.maps.page
        monkeypatch.setattr(node.maps, "page", self.page)

    async def page(self, *args: Any) -> Any:
        self.asked.set()
        await self.go_on.wait()
        return await self._page(*args)


@pytest.mark.parametrize("size", [100, 150])
async def test_a_client_closes_while_a_page_is_read(
    reader: OpenMap, second_node: Node, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    await fill(second_node, "map:a", size)
    held = HeldPages(second_node, monkeypatch)
    one = await reader("map:a")
    reading = asyncio.create_task(one.begin())
    await held.asked.wait()
    one.connection.client.close(None)
    held.go_on.set()
    await reading
    assert one.last == {}
    assert is_clean(second_node, "map:a")


@pytest.mark.parametrize("size", [100, 150])
async def test_the_server_unsubscribes_while_a_page_is_read(
    reader: OpenMap, second_node: Node, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    await fill(second_node, "map:a", size)
    held = HeldPages(second_node, monkeypatch)
    one = await reader("map:a")
    reading = asyncio.create_task(one.begin())
    await held.asked.wait()
    await second_node.unsubscribe_user("17", "map:a")
    held.go_on.set()
    await reading
    assert "state" not in one.last
    await eventually(lambda: one.connection.pushed != [])
    assert one.connection.pushed[-1]["unsubscribe"]["code"] == 2000
    assert is_clean(second_node, "map:a")


async def test_an_engine_that_fails_at_a_page(
    reader: OpenMap, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()

    async def page(*args: Any, **options: Any) -> Any:
        raise EngineUnavailable("away")

    monkeypatch.setattr(second_node.maps, "page", page)
    await one.go_on()
    await eventually(lambda: one.connection.closes != [])
    assert is_clean(second_node, "map:a")


async def test_a_client_that_asks_for_no_page_is_slow(
    reader: OpenMap, second_node: Node, clock: Clock
) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin()
    await clock.advance(PAGE_SECONDS - 0.1)
    assert not one.connection.closes
    await clock.advance(0.2)
    await eventually(lambda: one.connection.closes != [])
    assert one.connection.closes == [SLOW]
    assert is_clean(second_node, "map:a")


async def test_a_client_that_goes_on_reading_is_not_slow(
    reader: OpenMap, second_node: Node, clock: Clock
) -> None:
    await fill(second_node, "kept:a", 350)
    one = await reader("kept:a")
    await one.begin()
    for _ in range(3):
        await clock.advance(PAGE_SECONDS - 1)
        await one.go_on()
    assert not one.connection.closes
    assert len(one.now) == 350


async def test_all_pages_have_a_limit_of_time(
    reader: OpenMap, second_node: Node, clock: Clock
) -> None:
    steps = int(FLOW_SECONDS / (PAGE_SECONDS - 1)) + 1
    await fill(second_node, "kept:a", 100 * (steps + 1))
    one = await reader("kept:a")
    await one.begin()
    for _ in range(steps - 1):
        await clock.advance(PAGE_SECONDS - 1)
        await one.go_on()
    assert not one.connection.closes
    await clock.advance(PAGE_SECONDS - 1)
    await eventually(lambda: one.connection.closes != [])
    assert one.connection.closes == [SLOW]


@pytest.mark.parametrize("options", [{"client_recovery_max_size": 20_000}], indirect=True)
async def test_what_waits_for_a_reader_has_a_bound(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin()
    for value in range(30):
        await put(second_node, "map:a", "key", 10**1000 + value)
    await one.go_on()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


async def test_a_client_that_is_live_is_not_slow(
    reader: OpenMap, second_node: Node, clock: Clock
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


async def test_a_filter_is_for_state_and_changes(reader: OpenMap, second_node: Node) -> None:
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
async def test_state_counts_as_recovery(reader: OpenMap, second_node: Node) -> None:
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
