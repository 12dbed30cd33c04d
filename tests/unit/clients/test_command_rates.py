"""Rates of commands: what a client that sends too many gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, turns

SUBSCRIBE, UNSUBSCRIBE, PRESENCE, PING, RPC, UNKNOWN = 1, 2, 4, 7, 9, 99
TOO_MANY = 111
SLOW = 3008
"""The close code of the first generation."""


@pytest.fixture
async def node(clock: Clock, request: pytest.FixtureRequest) -> AsyncIterator[Node]:
    """A node with the rates of the test's parameter."""
    node = Node(
        load({"client_insecure": True, "presence": True, "client_command_rates": request.param})
    )
    await node.start()
    yield node
    await stop(node, clock, SHUTDOWN_TIMEOUT)


@pytest.fixture
async def connection(node: Node) -> Connection:
    connection = Connection(node)
    await connection.say(1, 0)
    return connection


async def codes(connection: Connection, method: int, number: int, **params: Any) -> list[int]:
    """The error codes of so many commands, 0 for those without an error."""
    begun = len(connection.messages)
    for _ in range(number):
        await connection.say(7, method, **params)
    await turns()
    replies = [message for message in connection.messages[begun:] if message.get("id") == 7]
    return [reply.get("error", {}).get("code", 0) for reply in replies]


@pytest.mark.parametrize("node", ["* 2/s burst 4"], indirect=True)
async def test_commands_beyond_the_rate_are_refused_until_time_passes(
    connection: Connection, clock: Clock
) -> None:
    # connect was the first of them
    at_once = await codes(connection, UNKNOWN, 5)
    await clock.advance(0.5)
    later = await codes(connection, UNKNOWN, 1)
    assert at_once == [104, 104, 104, TOO_MANY, TOO_MANY]
    assert later == [104]
    assert connection.closes == []


@pytest.mark.parametrize("node", ["* 2/s burst 4"], indirect=True)
async def test_client_that_goes_on_is_closed(connection: Connection, clock: Clock) -> None:
    answered = await codes(connection, UNKNOWN, 100)
    assert answered == [104] * 3 + [TOO_MANY] * 4
    assert connection.closes == [SLOW]


@pytest.mark.parametrize("node", ["presence 1/s burst 2, * 1/s burst 50"], indirect=True)
async def test_method_may_have_a_lower_rate_of_its_own(connection: Connection) -> None:
    await connection.subscribe("a")
    assert await codes(connection, PRESENCE, 3, channel="a") == [0, 0, TOO_MANY]
    assert await codes(connection, UNKNOWN, 3) == [104, 104, 104]


@pytest.mark.parametrize("node", ["presence 1/s burst 2"], indirect=True)
async def test_without_a_rate_for_all_other_methods_have_none(connection: Connection) -> None:
    assert set(await codes(connection, UNKNOWN, 500)) == {104}


@pytest.mark.parametrize("node", ["* 1/s burst 3"], indirect=True)
async def test_command_that_a_client_needs_is_done_but_counts(connection: Connection) -> None:
    await connection.subscribe("a")
    answered = await codes(connection, PING, 3)
    ended = await codes(connection, UNSUBSCRIBE, 1, channel="a")
    flood = await codes(connection, PING, 100)
    assert (answered, ended) == ([0, 0, 0], [0])
    assert not connection.client.session.subscriptions
    assert len(flood) < 3
    assert connection.closes == [SLOW]


@pytest.mark.parametrize("node", ["presence 1/h, rpc 1/s burst 5"], indirect=True)
async def test_refusals_by_one_rate_do_not_count_for_another(connection: Connection) -> None:
    await connection.subscribe("a")
    presence = await codes(connection, PRESENCE, 2, channel="a")
    rpc = await codes(connection, RPC, 10)
    before = connection.closes.copy()
    flood = await codes(connection, RPC, 1)
    assert presence == [0, TOO_MANY]
    assert rpc[5:] == [TOO_MANY] * 5
    assert before == []
    assert (flood, connection.closes) == ([], [SLOW])


@pytest.mark.parametrize("frame", [b"\n", b" ", b"", b"\n \n"])
@pytest.mark.parametrize("node", ["* 1/s burst 10"], indirect=True)
async def test_frame_without_a_command_counts_as_one(connection: Connection, frame: bytes) -> None:
    for _ in range(100):
        await asyncio.create_task(connection.dispatcher.receive(frame))
    await turns()
    assert len(connection.closes) == 1


@pytest.mark.parametrize("node", ["* 1/s burst 3"], indirect=True)
async def test_rates_of_two_clients_are_apart(node: Node, connection: Connection) -> None:
    other = Connection(node)
    await other.say(1, 0)
    await codes(connection, UNKNOWN, 3)
    assert await codes(other, UNKNOWN, 2) == [104, 104]


@pytest.mark.parametrize("node", [""], indirect=True)
async def test_without_rates_a_client_may_send_what_it_likes(connection: Connection) -> None:
    frame = "\n".join(json.dumps({"id": 7, "method": UNKNOWN}) for _ in range(5000)).encode()
    await asyncio.create_task(connection.dispatcher.receive(frame))
    await turns()
    assert len([message for message in connection.messages if message.get("id") == 7]) == 5000
    assert connection.closes == []


async def test_default_rates_let_a_page_with_many_channels_begin_at_once(clock: Clock) -> None:
    node = Node(load({"client_insecure": True, "presence": True, "client_channel_limit": 0}))
    await node.start()
    connection = Connection(node)
    await connection.say(1, 0)
    for number in range(200):
        await connection.say(3, SUBSCRIBE, channel=f"c{number}")
        await connection.say(4, PRESENCE, channel=f"c{number}")
    await turns()
    assert [m for m in connection.messages if "error" in m] == []
    await stop(node, clock, SHUTDOWN_TIMEOUT)
