"""SockJS sessions of two nodes over a channel layer that is not ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import pytest

from realtime.config.reader import load
from realtime.engine.redis.engine import RedisEngine
from realtime.engine.redis.foreign import ForeignGroups
from realtime.engine.redis.layer import RedisChannelLayer
from realtime.node.node import Node
from realtime.transports.sockjs.application import SockJS
from tests.engine.layered_nodes import core
from tests.redis_server import RedisServer
from tests.unit.transports.emulation.parts import (
    CONNECT,
    OPEN,
    OPTIONS,
    SHUTDOWN,
    Visitor,
    data_in,
    publish,
    subscribe_command,
)

TIMEOUT = 20.0


class Pair(NamedTuple):
    """Two nodes of one service."""

    one: Node
    other: Node


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something has come through Redis."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"it did not come true in {TIMEOUT} s"
        await asyncio.sleep(0.01)


@pytest.fixture
async def pair(redis_server: RedisServer, unique: str) -> AsyncIterator[Pair]:
    """Two nodes whose messages the layer of lists sends."""
    foreign = [core(redis_server.url, f"{unique}-foreign") for _ in range(2)]
    nodes = []
    for layer in foreign:
        own = RedisChannelLayer(hosts=[redis_server.url], prefix=unique)
        nodes.append(
            Node(
                load(dict(OPTIONS)),
                RedisEngine(own.bus, unique, groups=ForeignGroups(own.bus, layer)),
            )
        )
        await nodes[-1].start()
    yield Pair(*nodes)
    for node in nodes:
        await node.stop()
    for layer in foreign:
        await layer.close_pools()


async def test_session_lives_at_two_nodes_until_its_own_one_stops(pair: Pair, unique: str) -> None:
    visitor = Visitor(SockJS(None), unique)
    opening = visitor.receive(pair.one, "xhr")
    await asyncio.wait_for(opening.task, TIMEOUT)
    assert opening.frames == [OPEN]
    sending = visitor.send(pair.other, CONNECT, subscribe_command("a"))
    await asyncio.wait_for(sending.task, TIMEOUT)
    assert sending.status == 204

    stream = visitor.receive(pair.other)
    await eventually(lambda: '\\"id\\":2' in "".join(stream.frames))
    for value in range(200):
        await publish((pair.one, pair.other)[value % 2], "a", value)
    await eventually(lambda: len(data_in(stream.frames)) >= 200)

    # plain channels over this layer keep no order between two publishers
    assert sorted(data_in(stream.frames)) == [*range(200)]
    await pair.one.stop()
    await asyncio.wait_for(stream.task, TIMEOUT)
    assert stream.frames[-1] == SHUTDOWN
