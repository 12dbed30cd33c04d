"""The second generation where the engine fails, the node stops, or the site refreshes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from realtime.cluster.member import NewPublication
from realtime.config.reader import load
from realtime.node.hooks import Caller, Hooks, Refreshed
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.clients.second_parts import OPTIONS, SecondConnection, publish, published
from tests.unit.node.node_parts import Connection, stop
from tests.unit.parts import Clock, data, eventually, position_of, turns
from tests.unit.suspended_engine import SuspendedEngine

SERVER_ERROR, BAD_REQUEST, SHUTDOWN = 3004, 3501, 3001


@pytest.fixture
async def engine(clock: Clock) -> SuspendedEngine:
    return SuspendedEngine(Timers(asyncio.get_running_loop()))


@pytest.fixture
async def node(clock: Clock, engine: SuspendedEngine) -> AsyncIterator[Node]:
    made = Node(load(OPTIONS), engine)
    await made.start()
    yield made
    await stop(made, clock, SHUTDOWN_TIMEOUT)


async def connected(node: Node, **claims: Any) -> SecondConnection:
    connection = SecondConnection(node)
    assert "client" in await connection.call("connect", token=connection_token("17", **claims))
    return connection


# the engine

STEPS = ["subscribe", "presence.add", "history"]


@pytest.mark.parametrize("step", STEPS)
async def test_connect_whose_channels_the_engine_cannot_open_closes(
    node: Node, engine: SuspendedEngine, step: str
) -> None:
    top = await position_of(node.broker, "a")
    engine.failing.add(step)
    connection = SecondConnection(node)
    since = {"recover": True, "offset": 0, "epoch": top.epoch}
    token = connection_token("17", channels=["a"])
    await connection.call("connect", token=token, subs={"a": since})
    await eventually(lambda: connection.closes == [SERVER_ERROR])
    engine.failing.clear()
    assert connection.messages == []


@pytest.mark.parametrize("step", STEPS)
async def test_subscribe_that_the_engine_cannot_do_closes(
    node: Node, engine: SuspendedEngine, step: str
) -> None:
    top = await position_of(node.broker, "a")
    connection = await connected(node)
    engine.failing.add(step)
    since = {"recover": True, "offset": 0, "epoch": top.epoch}
    assert await connection.call("subscribe", channel="a", **since) == {}
    await eventually(lambda: connection.closes == [SERVER_ERROR])
    engine.failing.clear()


@pytest.mark.parametrize(
    ("method", "step"),
    [("presence", "presence.get"), ("presence_stats", "presence.get"), ("history", "history")],
)
async def test_question_that_the_engine_cannot_answer_is_a_temporary_error(
    node: Node, engine: SuspendedEngine, method: str, step: str
) -> None:
    connection = await connected(node)
    await connection.call("subscribe", channel="a")
    engine.failing.add(step)
    await connection.frame({"id": 9, method: {"channel": "a", "limit": -1}})
    await eventually(lambda: connection.reply(9) is not None)
    engine.failing.clear()
    error = {"code": 100, "message": "internal server error", "temporary": True}
    assert connection.reply(9) == {"id": 9, "error": error}
    assert connection.closes == []


# the node


async def test_client_that_has_said_nothing_is_told_in_both_ways_that_the_node_stops(
    clock: Clock,
) -> None:
    node = Node(load(OPTIONS))
    await node.start()
    silent, second = Connection(node), await connected(node)
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert (silent.closes, second.closes) == ([SHUTDOWN], [SHUTDOWN])
    assert silent.client.codec.generation == 1


# refresh by the site


class Refreshing(Hooks):
    refreshes = True

    async def refresh(self, caller: Caller, auth_session: str) -> Refreshed | None:
        return Refreshed(time.time() + 100)


async def test_client_may_not_refresh_where_the_site_does(clock: Clock) -> None:
    node = Node(load(OPTIONS), hooks=Refreshing())
    await node.start()
    connection = SecondConnection(node)
    result = await connection.call("connect", token=connection_token("17", ttl=100))
    await connection.call("refresh", token=connection_token("17", ttl=200))
    await turns()
    assert not {"expires", "ttl"} & set(result)
    assert connection.closes == [BAD_REQUEST]
    await stop(node, clock, SHUTDOWN_TIMEOUT)


# publications without a position


async def test_publication_that_skips_history_is_no_lost_position(node: Node) -> None:
    connection = await connected(node)
    await connection.call("subscribe", channel="a")
    await publish(node, "a", 1)
    unkept = NewPublication("a", data("2"), None, None, True)
    await node.publish_new(unkept, node.config.channel)
    await publish(node, "a", 3)
    await turns()
    assert published(connection) == [1, 2, 3]
    publications = [push["pub"] for push in connection.pushed if "pub" in push]
    assert [publication.get("offset") for publication in publications] == [1, None, 2]
    assert connection.closes == []
