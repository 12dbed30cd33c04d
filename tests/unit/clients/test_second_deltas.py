"""Subscriptions with deltas: what is agreed, and what they get, now and when they come back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.cluster.member import NewPublication
from realtime.node.node import Node
from realtime.server_api import operations
from tests import fossil_reader
from tests.unit.clients.conftest import Connect
from tests.unit.clients.second_parts import SecondConnection
from tests.unit.parts import data, turns

TEXT = "always the same, " * 8


async def send(node: Node, channel: str, *numbers: int, **options: Any) -> str:
    """Publish a long text with each number; returns the epoch."""
    epoch = ""
    for number in numbers:
        new = NewPublication(channel, data(json.dumps({"text": TEXT, "n": number})), **options)
        position = (await operations.publish(node, new)).position
        epoch = position.epoch if position is not None else ""
    await turns()
    return epoch


def read(connection: SecondConnection, *recovered: dict[str, Any]) -> tuple[list[int], list[bool]]:
    """Read what came as a client with deltas does: the numbers, and which were deltas."""
    numbers, deltas, base = [], [], b""
    pushed = [push["pub"] for push in connection.pushed if "pub" in push]
    for pub in [*recovered, *pushed]:
        sent = pub["data"].encode()
        is_delta = pub.get("delta", False)
        base = fossil_reader.apply(base, sent) if is_delta else sent
        numbers.append(json.loads(base)["n"])
        deltas.append(is_delta)
    return numbers, deltas


@pytest.mark.parametrize("channel", ["deltas:a", "plaindeltas:a"])
async def test_whole_first_and_then_deltas(
    connect: Connect, second_node: Node, channel: str
) -> None:
    connection, plain = await connect(), await connect()
    result = await connection.call("subscribe", channel=channel, delta="fossil")
    assert "delta" not in await plain.call("subscribe", channel=channel)
    await send(second_node, channel, 1, 2, 3)
    assert result["delta"] is True
    assert read(connection) == ([1, 2, 3], [False, True, True])
    assert [push["pub"]["data"]["n"] for push in plain.pushed] == [1, 2, 3]


@pytest.mark.parametrize("channel", ["plain:a", "a"])
async def test_channel_without_deltas_declines(
    connect: Connect, second_node: Node, channel: str
) -> None:
    connection = await connect()
    assert "delta" not in await connection.call("subscribe", channel=channel, delta="fossil")
    await send(second_node, channel, 1)
    assert [push["pub"]["data"]["n"] for push in connection.pushed if "pub" in push] == [1]


async def test_filter_has_no_deltas(connect: Connect, second_node: Node) -> None:
    connection = await connect()
    tf = {"key": "team", "cmp": "nex"}
    result = await connection.call("subscribe", channel="deltas:a", delta="fossil", tf=tf)
    assert "delta" not in result
    await send(second_node, "deltas:a", 1, 2)
    assert [push["pub"]["data"]["n"] for push in connection.pushed] == [1, 2]


async def test_recovered_ones_are_whole_and_the_next_one_is_a_delta(
    connect: Connect, second_node: Node
) -> None:
    epoch = await send(second_node, "deltas:a", 1, 2, 3)
    connection = await connect()
    result = await connection.call(
        "subscribe", channel="deltas:a", delta="fossil", recover=True, offset=1, epoch=epoch
    )
    await send(second_node, "deltas:a", 4)
    assert (result["recovered"], result["delta"]) == (True, True)
    assert read(connection, *result["publications"]) == ([2, 3, 4], [False, False, True])


async def test_what_did_not_fit_into_the_reply_is_no_base(
    connect: Connect, second_node: Node
) -> None:
    epoch = await send(second_node, "deltas:a", 1, 2)
    connection = await connect()
    object.__setattr__(second_node.config, "client_recovery_max_size", 10)
    result = await connection.call(
        "subscribe", channel="deltas:a", delta="fossil", recover=True, offset=1, epoch=epoch
    )
    assert "publications" not in result
    await send(second_node, "deltas:a", 3, 4)
    assert read(connection) == ([3, 4], [False, True])


async def test_nothing_to_recover_means_a_whole_publication(
    connect: Connect, second_node: Node
) -> None:
    epoch = await send(second_node, "deltas:a", 1)
    other, connection = await connect(), await connect()
    await other.call("subscribe", channel="deltas:a", delta="fossil")
    await send(second_node, "deltas:a", 2)
    for since, recovered in ((2, True), (7, False)):
        result = await connection.call(
            "subscribe", channel="deltas:a", delta="fossil", recover=True, offset=since, epoch=epoch
        )
        assert (result.get("recovered", False), "publications" in result) == (recovered, False)
        await connection.call("unsubscribe", channel="deltas:a")
    await connection.call("subscribe", channel="deltas:a", delta="fossil")
    await send(second_node, "deltas:a", 3, 4)
    assert read(connection) == ([3, 4], [False, True])
    assert read(other) == ([2, 3, 4], [False, True, True])


async def test_history_is_whole_and_plain(connect: Connect, second_node: Node) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="deltas:a", delta="fossil")
    await send(second_node, "deltas:a", 1, 2)
    history = await connection.call("history", channel="deltas:a", limit=-1)
    assert [each["data"]["n"] for each in history["publications"]] == [1, 2]


async def test_publication_without_history_is_a_base_too(
    connect: Connect, second_node: Node
) -> None:
    connection = await connect()
    await connection.call("subscribe", channel="deltas:a", delta="fossil")
    await send(second_node, "deltas:a", 1)
    await send(second_node, "deltas:a", 2, skip_history=True)
    await send(second_node, "deltas:a", 3)
    assert read(connection) == ([1, 2, 3], [False, True, True])
