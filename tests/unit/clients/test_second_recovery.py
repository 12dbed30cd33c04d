"""Positions, recovery and history of the second generation, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.node.node import Node
from tests.conftest import connection_token
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.node.node_parts import Connection, publish
from tests.unit.parts import position_of, subscribe_user, turns

TWO_KEPT = {"history_size": 2}
FEW = {"client_recovery_max_publication_limit": 2, "client_history_max_publication_limit": 3}


async def publish_to(node: Node, channel: str, number: int) -> str:
    """Publish 1, 2, ...; returns the epoch."""
    options = node.config.options_of_namespace(channel.partition(":")[0] if ":" in channel else "")
    assert options is not None
    for value in range(1, number + 1):
        await publish(node, options, value, channel)
    return (await position_of(node.broker, channel)).epoch


def offsets(result: dict[str, Any]) -> list[int]:
    return [publication["offset"] for publication in result.get("publications", [])]


# recovery: 5 and 6 of 6 publications are kept; all rows are in tests/unit/streams


@pytest.mark.parametrize("options", [TWO_KEPT], indirect=True)
@pytest.mark.parametrize(
    ("since", "epoch", "recovered", "publications", "offset"),
    [
        pytest.param(4, "right", True, [5, 6], 4, id="all that is kept"),
        pytest.param(5, "right", True, [6], 5, id="one"),
        pytest.param(3, "right", False, [], 6, id="gap"),
        pytest.param(5, "wrong", False, [], 6, id="another epoch"),
        pytest.param(5, "", True, [6], 5, id="no epoch"),
    ],
)
async def test_recovery(
    connect: Connect,
    second_node: Node,
    since: int,
    epoch: str,
    recovered: bool,
    publications: list[int],
    offset: int,
) -> None:
    current = await publish_to(second_node, "a", 6)
    connection = await connect()

    result = await connection.call(
        "subscribe",
        channel="a",
        recover=True,
        offset=since,
        epoch=current if epoch == "right" else epoch,
    )

    assert result["was_recovering"] is True
    assert result.get("recovered", False) is recovered
    assert (offsets(result), result.get("offset", 0)) == (publications, offset)
    assert (result["epoch"], result["recoverable"], result["positioned"]) == (current, True, True)


async def test_position_without_recovery_asked_for(connect: Connect, second_node: Node) -> None:
    epoch = await publish_to(second_node, "a", 6)
    connection = await connect()
    result = await connection.call("subscribe", channel="a")
    assert result == {"recoverable": True, "epoch": epoch, "offset": 6, "positioned": True}


@pytest.mark.parametrize("options", [FEW], indirect=True)
async def test_more_than_the_limit_is_not_recovered(connect: Connect, second_node: Node) -> None:
    epoch = await publish_to(second_node, "a", 3)
    connection = await connect()
    result = await connection.call("subscribe", channel="a", recover=True, epoch=epoch)
    assert (result.get("recovered", False), offsets(result), result["offset"]) == (False, [], 3)


async def test_error_in_place_of_a_new_beginning_for_who_asks(
    connect: Connect, second_node: Node
) -> None:
    await publish_to(second_node, "a", 3)
    connection = await connect()
    wrong = {"channel": "a", "recover": True, "epoch": "wrong"}
    assert await connection.call("subscribe", **wrong, flag=3) == {"error": 112}
    assert "a" not in connection.client.session.subscriptions
    assert "error" not in await connection.call("subscribe", **wrong, flag=1)


async def test_cache_mode_recovers_the_newest_publication(
    connect: Connect, second_node: Node
) -> None:
    epoch = await publish_to(second_node, "cache:a", 5)
    one, other = await connect(), await connect()
    asked = await one.call("subscribe", channel="cache:a", recover=True)
    silent = await other.call("subscribe", channel="cache:a")
    await publish_to(second_node, "cache:a", 1)
    await turns()
    assert (asked["recovered"], offsets(asked), asked["epoch"]) == (True, [5], epoch)
    assert silent == {"recoverable": True, "epoch": epoch, "offset": 5, "positioned": True}
    assert [push["pub"]["offset"] for push in one.pushed] == [6]


@pytest.mark.parametrize("flag", [0, 2])
async def test_cache_mode_may_recover_unasked(
    connect: Connect, second_node: Node, flag: int
) -> None:
    empty = await (await connect()).call("subscribe", channel="auto:a", flag=flag)
    epoch = await publish_to(second_node, "auto:a", 5)
    connection, asking = await connect(), await connect()
    silent = await connection.call("subscribe", channel="auto:a", flag=flag)
    top = await asking.call("subscribe", channel="auto:a", recover=True, offset=5, epoch=epoch)
    assert (empty["was_recovering"], empty.get("recovered", False)) == (True, False)
    assert (silent["was_recovering"], silent["recovered"], offsets(silent)) == (True, True, [5])
    assert (top["recovered"], offsets(top)) == (True, [])


async def test_server_side_subscriptions_recover_unasked(
    connect: Connect, second_node: Node
) -> None:
    await publish_to(second_node, "auto:a", 2)
    connection = await connect()
    await subscribe_user(second_node, "17", "auto:a")
    await turns()
    late = await connect(channels=["auto:b", "auto:a"])
    assert connection.kinds("auto:a") == ["subscribe", "pub"]
    subs = late.messages[0]["connect"]["subs"]
    assert (offsets(subs["auto:a"]), subs["auto:b"]["was_recovering"]) == ([2], True)


async def test_the_first_generation_recovers_when_it_asks(second_node: Node) -> None:
    await publish_to(second_node, "auto:a", 2)
    connection = Connection(second_node)
    await connection.say(1, 0, token=connection_token("17"))
    await connection.say(2, 1, channel="auto:a")
    await turns()
    reply = connection.reply(2)
    assert reply is not None
    assert offsets(reply["result"]) == []


async def test_cache_mode_is_the_same_in_the_first_generation(second_node: Node) -> None:
    await publish_to(second_node, "cache:a", 5)
    connection = Connection(second_node)
    await connection.say(1, 0, token=connection_token("17"))
    await connection.say(2, 1, channel="cache:a", recover=True)
    await turns()
    reply = connection.reply(2)
    assert reply is not None
    assert (reply["result"]["recovered"], offsets(reply["result"])) == (True, [5])


async def test_cache_mode_without_publications_recovers_nothing(connect: Connect) -> None:
    connection = await connect()
    result = await connection.call("subscribe", channel="cache:a", recover=True)
    assert (result["was_recovering"], result.get("recovered", False)) == (True, False)


async def test_server_side_subscription_recovers(connect: Connect, second_node: Node) -> None:
    epoch = await publish_to(second_node, "a", 2)
    connection = SecondConnection(second_node)
    result = await connection.call(
        "connect",
        token=connection_token("17", channels=["a"]),
        subs={"a": {"recover": True, "offset": 1, "epoch": epoch}},
    )
    sub = result["subs"]["a"]
    assert (sub["recovered"], offsets(sub), sub["offset"]) == (True, [2], 1)


# what a client may ask for


@pytest.mark.parametrize(
    ("channel", "asks", "result"),
    [
        ("plain:a", {}, set()),
        ("plain:a", {"positioned": True, "recoverable": True}, set()),
        ("plain:a", {"recover": True}, {"was_recovering"}),
        ("hidden:a", {"recoverable": True}, set()),
        ("asking:a", {}, set()),
        ("asking:a", {"positioned": True}, {"positioned", "epoch"}),
        ("asking:a", {"recoverable": True}, {"positioned", "recoverable", "epoch"}),
        ("kept:a", {"recoverable": True}, {"positioned", "recoverable", "epoch"}),
        ("kept:a", {"recover": True, "epoch": ""}, {"was_recovering"}),
    ],
)
async def test_position_is_given_to_who_asks_and_may_have_it(
    connect: Connect, channel: str, asks: dict[str, Any], result: set[str]
) -> None:
    connection = await connect()
    assert set(await connection.call("subscribe", channel=channel, **asks)) == result


async def test_subscriber_without_a_position_goes_on_beside_one_with_a_position(
    connect: Connect, second_node: Node
) -> None:
    plain, positioned = await connect(), await connect()
    await plain.call("subscribe", channel="kept:a")
    await publish_to(second_node, "kept:a", 1)
    await positioned.call("subscribe", channel="kept:a", positioned=True)
    await publish_to(second_node, "kept:a", 2)
    await turns()
    assert [push["pub"]["offset"] for push in plain.pushed] == [1, 2, 3]
    assert [push["pub"]["offset"] for push in positioned.pushed] == [2, 3]
    assert not plain.client.session.has_position("kept:a")


# history: all of 4 publications are kept


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        ({}, []),
        ({"limit": 0, "since": {"offset": 2}}, []),
        ({"limit": -1}, [1, 2, 3, 4]),
        ({"limit": 2}, [1, 2]),
        ({"limit": -1, "since": {"offset": 2, "epoch": "E"}}, [3, 4]),
        ({"limit": -1, "since": {"offset": 2}}, [3, 4]),
        ({"limit": 1, "since": {"offset": 2}}, [3]),
        ({"limit": 2, "reverse": True}, [4, 3]),
        ({"limit": -1, "since": {"offset": 3, "epoch": "E"}, "reverse": True}, [2, 1]),
        ({"limit": -1, "since": {"offset": 1}, "reverse": True}, []),
        ({"limit": -1, "since": {"offset": 9}}, []),
    ],
)
async def test_history(
    connect: Connect, second_node: Node, asks: dict[str, Any], expected: list[int]
) -> None:
    epoch = await publish_to(second_node, "a", 4)
    connection = await connect()
    await connection.call("subscribe", channel="a")
    if asks.get("since", {}).get("epoch"):
        asks = asks | {"since": asks["since"] | {"epoch": epoch}}
    result = await connection.call("history", channel="a", **asks)
    assert offsets(result) == expected
    assert (result["epoch"], result["offset"]) == (epoch, 4)


@pytest.mark.parametrize(
    ("asks", "error"),
    [
        ({"since": {"offset": 2, "epoch": "wrong"}}, 112),
        ({"limit": -1, "since": {"offset": 2, "epoch": "wrong"}}, 112),
        ({"limit": -1, "since": {"offset": 0}, "reverse": True}, 107),
    ],
)
async def test_history_that_cannot_be_read(
    connect: Connect, second_node: Node, asks: dict[str, Any], error: int
) -> None:
    await publish_to(second_node, "a", 4)
    connection = await connect()
    await connection.call("subscribe", channel="a")
    assert await connection.call("history", channel="a", **asks) == {"error": error}


@pytest.mark.parametrize("options", [FEW], indirect=True)
@pytest.mark.parametrize("limit", [-1, 100])
async def test_history_is_cut_at_the_limit(connect: Connect, second_node: Node, limit: int) -> None:
    await publish_to(second_node, "a", 5)
    connection = await connect()
    await connection.call("subscribe", channel="a")
    result = await connection.call("history", channel="a", limit=limit)
    assert offsets(result) == [1, 2, 3]
