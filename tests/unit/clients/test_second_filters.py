"""Subscriptions with a filter by tags: what they get, now and when they come back."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.cluster.member import NewPublication
from realtime.node.node import Node
from realtime.server_api import operations
from realtime.streams.tag_filters import Tags, TagsFilter
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection, published
from tests.unit.parts import data, turns

RED = {"key": "team", "cmp": "eq", "val": "red"}
BLUE = {"key": "team", "cmp": "eq", "val": "blue"}


async def tagged(node: Node, channel: str, *teams: str) -> str:
    """Publish 1, 2, ... with these tags; returns the epoch."""
    epoch = ""
    for number, team in enumerate(teams, 1):
        tags = {"team": team} if team else None
        new = NewPublication(channel, data(str(number)), tags)
        position = (await operations.publish(node, new)).position
        epoch = position.epoch if position is not None else ""
    await turns()
    return epoch


def offsets(result: dict[str, Any]) -> list[int]:
    return [publication["offset"] for publication in result.get("publications", [])]


@pytest.mark.parametrize("channel", ["tags:a", "plaintags:a"])
async def test_only_matching_publications_are_pushed(
    connect: Connect, second_node: Node, channel: str
) -> None:
    red, also_red, blue, plain = [await connect() for _ in range(4)]
    for connection, tf in ((red, RED), (also_red, dict(RED)), (blue, BLUE), (plain, None)):
        await connection.call("subscribe", channel=channel, tf=tf)
    await tagged(second_node, channel, "red", "blue", "", "red")
    assert published(red) == published(also_red) == [1, 4]
    assert published(blue) == [2]
    assert published(plain) == [1, 2, 3, 4]


async def test_a_filtered_subscriber_leaves(connect: Connect, second_node: Node) -> None:
    connection, other = await connect(), await connect()
    await connection.call("subscribe", channel="tags:a", tf=RED)
    await other.call("subscribe", channel="tags:a", tf=RED)
    await connection.call("unsubscribe", channel="tags:a")
    await tagged(second_node, "tags:a", "red")
    assert (published(connection), published(other)) == ([], [1])
    assert second_node.hub.feeds["tags:a"].size == 1
    await other.call("unsubscribe", channel="tags:a")
    assert "tags:a" not in second_node.hub.feeds


async def test_a_subscription_takes_the_filter_of_its_last_request(
    connect: Connect, second_node: Node
) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="tags:a", tf=RED)
    await connection.call("unsubscribe", channel="tags:a")
    await connection.call("subscribe", channel="tags:a")
    await tagged(second_node, "tags:a", "blue")
    assert published(connection) == [1]


@pytest.mark.parametrize(
    ("channel", "tf"),
    [
        ("a", RED),
        ("tags:a", {}),
        ("tags:a", {"op": "and"}),
        ("tags:a", {"key": "team", "cmp": "like", "val": "red"}),
    ],
)
async def test_filters_that_are_off_or_malformed_are_refused(
    connect: Connect, second_node: Node, channel: str, tf: dict[str, Any]
) -> None:
    connection = await connect()
    assert await connection.call("subscribe", channel=channel, tf=tf) == {"error": 107}
    assert channel not in second_node.hub.feeds
    assert "error" not in await connection.call("subscribe", channel=channel)


@pytest.mark.parametrize(
    ("since", "found", "offset"),
    [
        pytest.param(0, [1, 4], 0, id="all"),
        pytest.param(1, [4], 3, id="from one that it got"),
        pytest.param(2, [4], 3, id="from one that it did not get"),
        pytest.param(4, [], 6, id="nothing that matches"),
        pytest.param(6, [], 6, id="the top"),
    ],
)
async def test_recovers_what_matches(
    connect: Connect, second_node: Node, since: int, found: list[int], offset: int
) -> None:
    epoch = await tagged(second_node, "tags:a", "red", "blue", "", "red", "blue", "")
    connection = await connect()
    result = await connection.call(
        "subscribe", channel="tags:a", recover=True, offset=since, epoch=epoch, tf=RED
    )
    await tagged(second_node, "tags:a", "red")
    assert (result["recovered"], offsets(result)) == (True, found)
    assert result.get("offset", 0) == offset
    assert [push["pub"]["offset"] for push in connection.pushed if "pub" in push] == [7]


async def test_what_was_removed_may_have_matched(connect: Connect, second_node: Node) -> None:
    epoch = await tagged(second_node, "tags:a", "red", *["blue"] * 11)
    connection = await connect()
    result = await connection.call(
        "subscribe", channel="tags:a", recover=True, offset=1, epoch=epoch, tf=RED
    )
    assert (result.get("recovered", False), result["offset"]) == (False, 12)


@pytest.mark.parametrize(
    ("since", "tf", "recovered", "found"),
    [
        pytest.param(0, RED, True, [4], id="the newest that matches"),
        pytest.param(4, RED, True, [], id="it has the newest that matches"),
        pytest.param(5, RED, True, [], id="it is past that"),
        pytest.param(6, RED, True, [], id="the top"),
        pytest.param(0, BLUE, True, [6], id="the newest of all matches"),
        pytest.param(0, {"key": "x", "cmp": "ex"}, False, [], id="nothing matches"),
    ],
)
async def test_cache_recovers_the_newest_that_matches(
    connect: Connect,
    second_node: Node,
    since: int,
    tf: dict[str, Any],
    recovered: bool,
    found: list[int],
) -> None:
    epoch = await tagged(second_node, "cachetags:a", "red", "red", "blue", "red", "", "blue")
    connection = await connect()
    result = await connection.call(
        "subscribe", channel="cachetags:a", recover=True, offset=since, epoch=epoch, tf=tf
    )
    assert (result.get("recovered", False), offsets(result)) == (recovered, found)


@pytest.mark.parametrize(
    ("tf", "found", "later"), [(RED, [3], [7]), (BLUE, [4], [6]), (None, [5], [6, 7])]
)
async def test_cache_recovers_the_newest_that_matches_unasked(
    connect: Connect,
    second_node: Node,
    tf: dict[str, Any] | None,
    found: list[int],
    later: list[int],
) -> None:
    await tagged(second_node, "autotags:a", "red", "blue", "red", "blue", "")
    connection = await connect()
    result = await connection.call("subscribe", channel="autotags:a", tf=tf)
    await tagged(second_node, "autotags:a", "blue", "red")
    assert (result["was_recovering"], result["recovered"], offsets(result)) == (True, True, found)
    assert [push["pub"]["offset"] for push in connection.pushed if "pub" in push] == later


async def test_publications_kept_back_pass_the_filter_too(
    connect: Connect, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection: SecondConnection = await connect()
    read = second_node.broker.history

    async def read_late(*args: Any, **kwargs: Any) -> Any:
        history = await read(*args, **kwargs)
        monkeypatch.undo()
        await tagged(second_node, "tags:a", "blue", "red")
        return history

    epoch = await tagged(second_node, "tags:a", "red")
    monkeypatch.setattr(second_node.broker, "history", read_late)
    result = await connection.call(
        "subscribe", channel="tags:a", recover=True, offset=0, epoch=epoch, tf=RED
    )

    assert (result["recovered"], offsets(result)) == (True, [1, 3])
    assert published(connection) == []


async def test_a_filter_is_evaluated_once_per_publication_for_all_of_its_subscribers(
    connect: Connect, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, other, blue = [await connect() for _ in range(4)]
    # another codec of the same filter
    other.client.speak(type(first.client.codec)())
    for connection, tf in ((first, RED), (second, dict(RED)), (other, RED), (blue, BLUE)):
        await connection.call("subscribe", channel="tags:a", tf=tf)
    evaluated: list[TagsFilter] = []
    match = TagsFilter._evaluate

    def evaluate(self: TagsFilter, tags: Tags) -> bool:
        evaluated.append(self)
        return match(self, tags)

    monkeypatch.setattr(TagsFilter, "_evaluate", evaluate)
    await tagged(second_node, "tags:a", "red", "blue")

    assert len(evaluated) == 4
    assert len(set(evaluated)) == 2
    assert [published(each) for each in (first, second, other, blue)] == [[1], [1], [1], [2]]
