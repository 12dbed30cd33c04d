"""A connection whose expiry the server API sets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

import realtime
from realtime.cluster.control import RefreshSome
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.serving import serving
from tests.conftest import connection_token
from tests.server import SECRET
from tests.unit.node.node_parts import Connection
from tests.unit.parts import Clock, RecordingClient, data, eventually, turns


@pytest.fixture
async def node(clock: Clock) -> AsyncIterator[Node]:
    options = {"token_hmac_secret_key": SECRET, "client_expired_close_delay": 5}
    made = Node(load(options))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def connection(node: Node) -> Connection:
    """A connection that expires after a hundred seconds."""
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17", ttl=100))
    return connection


async def test_connection_expires_when_the_server_says(
    node: Node, connection: Connection, clock: Clock
) -> None:
    await node.send_control(RefreshSome(user="17", expires_at=time.time() + 30))
    await clock.advance(34)
    assert connection.closes == []
    await clock.advance(3)
    await eventually(lambda: connection.closes == [3005])


async def test_connection_expires_no_more(node: Node, connection: Connection, clock: Clock) -> None:
    await node.send_control(RefreshSome(user="17", expires_at=None))
    await clock.advance(10_000)
    await turns(20)
    assert connection.closes == []


async def test_connection_that_has_expired_is_closed_at_once(
    node: Node, connection: Connection
) -> None:
    await node.send_control(RefreshSome(user="17", expires_at=time.time() - 1))
    await eventually(lambda: connection.closes == [3005])


async def test_function_refreshes_clients_of_its_own_node() -> None:
    node = await serving.start()
    client = RecordingClient("C1", "17")
    node.hub.add(client)
    await realtime.arefresh("17", 5.5, info={"a": 1})
    assert client.refreshed == [(5.5, data('{"a":1}'))]
    node.hub.remove(client)
    await serving.stop()
