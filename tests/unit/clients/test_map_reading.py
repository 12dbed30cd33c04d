"""Maps: clients read all entries, and get every change after them."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.node.node import Node
from tests.unit.clients.conftest import OpenMap
from tests.unit.clients.map_parts import (
    MAPS,
    OPTIONS,
    entries,
    fill,
    is_clean,
    put,
    remove,
)

MORE_OPTIONS = OPTIONS

LOST = 112


@pytest.mark.parametrize("channel", MAPS)
async def test_a_small_map_takes_one_request(
    reader: OpenMap, second_node: Node, channel: str
) -> None:
    await fill(second_node, channel, 100)
    one = await reader(channel)
    await one.read()
    assert one.requests == 1
    assert one.last["type"] == 1
    assert one.now == await entries(second_node, channel)


@pytest.mark.parametrize("channel", MAPS)
async def test_changes_follow(reader: OpenMap, second_node: Node, channel: str) -> None:
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


async def test_the_reply_has_the_position_of_the_map(reader: OpenMap, second_node: Node) -> None:
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


async def test_an_ephemeral_map_has_no_position(reader: OpenMap, second_node: Node) -> None:
    await put(second_node, "brief:a", "k", 1)
    one = await reader("brief:a")
    await one.read()
    assert one.last == {"type": 1, "state": [{"data": 1, "key": "k"}]}


@pytest.mark.parametrize("channel", MAPS)
async def test_pages_with_changes_between_them(
    reader: OpenMap, second_node: Node, channel: str
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
    reader: OpenMap, second_node: Node
) -> None:
    await fill(second_node, "map:a", 150)
    one = await reader("map:a")
    await one.begin()
    for number in range(100):
        await put(second_node, "map:a", "hot", number)
    await one.go_on()
    assert one.now == await entries(second_node, "map:a")


async def test_all_pages_repeat_the_position_of_the_first(
    reader: OpenMap, second_node: Node
) -> None:
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
    reader: OpenMap, second_node: Node, limit: int, size: int
) -> None:
    await fill(second_node, "map:a", 250)
    one = await reader("map:a")
    await one.begin(limit=limit)
    assert len(one.last["state"]) == size


async def test_a_page_of_large_entries_ends_early(
    reader: OpenMap, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime.clients.maps.PAGE_BYTES", 1000)
    await fill(second_node, "map:a", 30)
    one = await reader("map:a")
    await one.begin()
    assert len(one.last["state"]) < 10
    while one.last.get("phase"):
        await one.go_on()
    assert one.now == await entries(second_node, "map:a")


async def test_a_client_comes_back_to_its_position(reader: OpenMap, second_node: Node) -> None:
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
    reader: OpenMap, second_node: Node, wrong: dict[str, Any]
) -> None:
    await fill(second_node, "map:a", 3)
    one = await reader("map:a")
    await one.read()
    await one.connection.call("unsubscribe", channel="map:a")
    await put(second_node, "map:a", "k0000", 9)
    await one.recover(**wrong)
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "map:a")


async def test_more_changes_than_history_keeps_are_lost(reader: OpenMap, second_node: Node) -> None:
    await fill(second_node, "map:a", 1)
    one = await reader("map:a")
    await one.read()
    await one.connection.call("unsubscribe", channel="map:a")
    for number in range(21):
        await put(second_node, "map:a", "k", number)
    await one.recover()
    assert one.last == {"error": LOST}


async def test_an_ephemeral_map_cannot_be_recovered(reader: OpenMap, second_node: Node) -> None:
    one = await reader("brief:a")
    one.last = {"epoch": "e", "offset": 1}
    await one.recover()
    assert one.last == {"error": LOST}
    assert is_clean(second_node, "brief:a")
