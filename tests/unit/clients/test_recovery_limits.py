"""What recovery sends has a bound of its own: a client that missed much is not slow for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.engine.memory import MemoryEngine
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, data, position_of, turns

SLOW, LIMIT_EXCEEDED = 3008, 106
OPTIONS = {
    "token_hmac_secret_key": SECRET,
    "v3_use_offset": True,
    "history_size": 50,
    "history_lifetime": 300,
    "history_recover": True,
    "client_queue_max_size": 1000,
}
LARGE = 400
"""Bytes of a publication: three are more than the queue takes."""

Start = Callable[..., Any]


@pytest.fixture
async def start(clock: Clock) -> AsyncIterator[Start]:
    """Start a node with more options; it is stopped at the end."""
    nodes: list[Node] = []

    async def start(**options: Any) -> Node:
        node = Node(load(OPTIONS | options), MemoryEngine(Timers(asyncio.get_running_loop())))
        nodes.append(node)
        await node.start()
        return node

    yield start
    for node in nodes:
        await stop(node, clock, SHUTDOWN_TIMEOUT)


async def publish(node: Node, channel: str, count: int) -> None:
    for _ in range(count):
        await node.publish(channel, data(f'"{"x" * LARGE}"'), node.config.channel)


async def connect(node: Node, **claims: Any) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17", **claims))
    await turns()
    assert connection.reply(1) is not None
    return connection


async def recover(connection: Connection, channel: str = "a", number: int = 2) -> dict[str, Any]:
    """Subscribe as a client that has seen nothing of the channel's stream."""
    epoch = (await position_of(connection.client.node.broker, channel)).epoch
    await connection.say(number, 1, channel=channel, recover=True, offset=0, epoch=epoch)
    await turns()
    reply = connection.reply(number)
    assert reply is not None
    result: dict[str, Any] = reply["result"]
    return result


def outcome(result: dict[str, Any]) -> tuple[int, bool]:
    return len(result.get("publications", [])), result.get("recovered", False)


async def test_recovery_of_more_bytes_than_the_queue_takes(start: Start) -> None:
    node = await start()
    connection = await connect(node)
    await publish(node, "a", 20)
    result = await recover(connection)
    assert outcome(result) == (20, True)
    assert connection.closes == []


async def test_recovery_above_its_bound_of_bytes_says_so_and_the_client_stays(
    start: Start,
) -> None:
    node = await start(client_recovery_max_size=10 * LARGE)
    connection = await connect(node)
    await publish(node, "a", 20)
    result = await recover(connection)
    assert outcome(result) == (0, False)
    assert result["offset"] == 20
    await publish(node, "a", 1)
    await turns()
    assert [push["data"]["offset"] for push in connection.pushes] == [21]
    assert connection.closes == []


@pytest.mark.parametrize(
    ("most", "expected"), [(20, (20, True)), (19, (0, False)), (0, (20, True))]
)
async def test_recovery_is_bounded_in_publications(
    start: Start, most: int, expected: tuple[int, bool]
) -> None:
    node = await start(client_recovery_max_publication_limit=most)
    connection = await connect(node)
    await publish(node, "a", 20)
    assert outcome(await recover(connection)) == expected


async def test_channels_of_one_client_share_the_bound_until_it_has_read(start: Start) -> None:
    node = await start(client_recovery_max_size=20 * LARGE)
    connection = await connect(node)
    for channel in ("a", "b", "c"):
        await publish(node, channel, 10)
    connection.backlog = 12 * LARGE
    assert outcome(await recover(connection, "a", 2)) == (10, True)
    assert outcome(await recover(connection, "b", 3)) == (0, False)
    connection.backlog = 0
    assert outcome(await recover(connection, "c", 4)) == (10, True)
    assert connection.closes == []


async def test_server_side_subscriptions_share_the_bound(start: Start) -> None:
    node = await start(client_recovery_max_size=20 * LARGE)
    epochs = {}
    for channel in ("a", "b"):
        await publish(node, channel, 10)
        epochs[channel] = (await position_of(node.broker, channel)).epoch
    connection = Connection(node)

    await connection.say(
        1,
        0,
        token=connection_token("17", channels=["a", "b"]),
        subs={name: {"recover": True, "offset": 0, "epoch": epochs[name]} for name in epochs},
    )
    await turns()

    reply = connection.reply(1)
    assert reply is not None
    assert {name: outcome(sub) for name, sub in reply["result"]["subs"].items()} == {
        "a": (10, True),
        "b": (0, False),
    }


async def test_client_that_reads_nothing_after_its_recovery_is_slow_all_the_same(
    start: Start,
) -> None:
    node = await start(client_recovery_max_size=20 * LARGE)
    connection = await connect(node)
    await publish(node, "a", 10)
    connection.backlog = 12 * LARGE
    await recover(connection)
    assert connection.closes == []
    connection.backlog = 32 * LARGE
    await publish(node, "a", 1)
    await turns()
    assert connection.closes == [SLOW]


async def test_reply_that_no_queue_can_hold_is_an_error(start: Start) -> None:
    node = await start(client_queue_max_size=100_000, history_size=400)
    connection = await connect(node)
    await publish(node, "a", 300)
    await connection.subscribe()
    await connection.say(3, 6, channel="a")
    await turns()
    reply = connection.reply(3)
    assert reply is not None
    assert reply["error"]["code"] == LIMIT_EXCEEDED
    assert connection.closes == []
