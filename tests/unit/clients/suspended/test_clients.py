"""Clients whose engine is slow, as an engine in another process may be."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from realtime.clients.dispatch import MAX_PUBLISHING
from realtime.config.reader import load
from realtime.node.node import SHUTDOWN_TIMEOUT, Node
from realtime.protocol.v1.json import JSONCodec
from realtime.timers import Timers
from tests.conftest import connection_token
from tests.unit.clients.suspended.conftest import STEPS
from tests.unit.node.node_parts import EVERYTHING, Connection, publish, stop
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import ClusterEngine, SuspendedEngine

SERVER_ERROR = 3004

Open = Callable[..., Any]


# the first subscriber of a channel, and other clients that subscribe meanwhile


async def test_second_subscriber_waits_for_the_first_one_s_engine_and_misses_nothing(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    first, second = await connect(), await connect()
    engine.hold("subscribe")
    commands = [first.subscribe(), second.subscribe()]
    await engine.reached("subscribe")
    await turns(20)
    assert (first.reply(2), second.reply(2)) == (None, None)

    await publish(node, node.config.channel, 1)
    engine.go_on("subscribe")
    await asyncio.gather(*commands)
    await publish(node, node.config.channel, 2)
    await turns()

    for connection in (first, second):
        reply = connection.reply(2)
        assert reply is not None
        assert reply["result"]["offset"] == 1
        assert [push["data"]["data"] for push in connection.pushes] == [2]


async def test_engine_is_asked_once_for_subscribers_that_come_together(
    engine: SuspendedEngine, connect: Open
) -> None:
    connections = [await connect() for _ in range(5)]
    engine.hold("subscribe")
    commands = [connection.subscribe() for connection in connections]
    await engine.reached("subscribe")
    await turns(20)
    assert engine.waiting == ["subscribe"]
    engine.go_on("subscribe")
    await asyncio.gather(*commands)


async def test_engine_that_fails_for_the_first_subscriber_fails_for_those_who_wait_with_it(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    first, second = await connect(), await connect()
    engine.hold("subscribe")
    engine.failing.add("subscribe")
    commands = [first.subscribe(), second.subscribe()]
    await engine.reached("subscribe")
    await turns(20)

    engine.go_on("subscribe")
    await asyncio.gather(*commands)
    await node.idle()

    assert (first.closes, second.closes) == ([SERVER_ERROR], [SERVER_ERROR])
    assert node.hub.feeds == {}
    assert await engine.presence.get("a") == {}


async def test_defect_while_a_channel_is_opened_fails_those_who_wait_with_it(
    node: Node, engine: SuspendedEngine, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await connect(), await connect()
    engine.hold("subscribe")
    monkeypatch.setattr(engine.broker, "history", _defect)
    commands = [first.subscribe(), second.subscribe()]
    await engine.reached("subscribe")
    await turns(20)

    engine.go_on("subscribe")
    await eventually(lambda: all(command.done() for command in commands))
    await node.idle()

    assert (first.closes, second.closes) == ([SERVER_ERROR], [SERVER_ERROR])
    assert node.hub.feeds == {}


async def _defect(*_: object, **__: object) -> None:
    raise RuntimeError("a defect")


async def test_client_that_is_dropped_while_it_opens_a_channel_harms_no_other(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    dropped, *others = [await connect() for _ in range(3)]
    engine.hold("subscribe")
    opening = dropped.subscribe()
    commands = [connection.subscribe() for connection in others]
    await engine.reached("subscribe")
    await turns(20)

    opening.cancel()
    await asyncio.wait([opening])
    await turns(20)
    assert engine.waiting == ["subscribe"]
    engine.go_on("subscribe")
    await asyncio.gather(*commands)
    await publish(node, node.config.channel, 1)
    await turns()

    for connection in others:
        assert [push["data"]["data"] for push in connection.pushes] == [1]
        assert connection.closes == []
    assert set(node.hub.feeds["a"].present()) == {connection.client for connection in others}


async def test_channel_can_be_subscribed_to_again_after_the_engine_failed(
    node: Node, engine: SuspendedEngine, connect: Open
) -> None:
    failed, later = await connect(), await connect()
    engine.failing.add("subscribe")
    await failed.subscribe()
    engine.failing.clear()
    await later.subscribe()
    await publish(node, node.config.channel, 1)
    await turns()
    assert failed.closes == [SERVER_ERROR]
    assert [push["data"]["data"] for push in later.pushes] == [1]


# closed while the client subscribes


@pytest.mark.parametrize("step", STEPS)
async def test_client_closed_while_it_subscribes_leaves_nothing(
    node: Node, engine: SuspendedEngine, connect: Open, step: str
) -> None:
    connection = await connect()
    engine.hold(step)
    command = connection.subscribe()
    await engine.reached(step)
    await node.disconnect_user("17")
    await turns()
    engine.go_on(step)
    await command
    await node.idle()
    assert await engine.presence.get("a") == {}
    assert (node.hub.feeds, node.hub.clients) == ({}, {})


# defects


async def test_client_whose_frame_the_service_fails_to_handle_is_closed_with_advice(
    node: Node, connect: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(codec: JSONCodec, frame: bytes) -> None:
        raise RuntimeError("a defect")

    connection = await connect()
    monkeypatch.setattr(JSONCodec, "decode", fail)
    await connection.say(2, 7)
    await node.idle()
    assert connection.closes == [SERVER_ERROR]
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [bool(record.exc_info) for record in errors] == [True]


# publishing


async def test_publication_that_never_had_its_turn_is_let_go_with_its_connection(
    clock: Clock,
) -> None:
    engine = ClusterEngine(Timers(asyncio.get_running_loop()))
    node = Node(load(EVERYTHING | {"publish": True}), engine)
    await node.start()
    connection = Connection(node)
    await connection.say(1, 0, token=connection_token("17"))
    engine.hold("publish")
    params = {"channel": "a", "data": 1}
    commands = [{"id": 2 + n, "method": 3, "params": params} for n in range(MAX_PUBLISHING + 1)]
    receiving = asyncio.create_task(
        connection.dispatcher.receive("\n".join(map(json.dumps, commands)).encode())
    )
    await eventually(lambda: len(engine.waiting) == MAX_PUBLISHING)

    receiving.cancel()
    await asyncio.wait([receiving])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del receiving
        gc.collect()

    assert warned == []
    engine.go_on("publish")
    await stop(node, clock, SHUTDOWN_TIMEOUT)
    assert engine.calls["publish"] == MAX_PUBLISHING
