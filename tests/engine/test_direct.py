"""Direct messages between two nodes over Redis, shards, and foreign channel layers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer

from realtime.channel_rules import inbox
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from tests.engine.bench import comes_true
from tests.engine.layered_nodes import LAYERS, OWN, SHARDS, two_nodes, two_step_node
from tests.redis_server import RedisServer
from tests.unit.parts import eventually

KINDS = [OWN, SHARDS, *(name for name in LAYERS if "drops" not in name)]
"""Layers that drop may drop direct messages: nothing is promised for those."""

TIMEOUT = 20.0
SHORT_TIMEOUT = 0.2


def read(node: Node, subject: str = "s") -> list[bytes]:
    """The bodies of the messages about a subject, as they arrive."""
    bodies: list[bytes] = []
    node.direct.handle(subject, lambda sender, body: bodies.append(body))
    return bodies


async def double(body: bytes) -> bytes:
    return b"[" + body + b"," + body + b"]"


def answer_double(node: Node) -> None:
    """Answer questions with the question twice."""
    node.direct.handle("double", lambda sender, body: double(body))


@pytest.fixture(params=KINDS)
async def nodes(
    request: pytest.FixtureRequest, redis_servers: list[RedisServer], unique: str
) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes over each layer, with open inboxes."""
    async with two_nodes(request.param, redis_servers, unique) as started:
        for node in started:
            await node.direct.open()
        yield started


# messages


async def test_messages_reach_their_receiver_alone_and_in_their_order(
    nodes: tuple[Node, Node],
) -> None:
    one, other = nodes
    mine, others = read(one), read(other)

    for number in range(50):
        await one.direct.send(other.uid, "s", b"%d" % number)
    await one.direct.send(one.uid, "s", b'"to myself"')

    await eventually(lambda: bool(mine) and len(others) >= 50)
    assert (mine, others) == ([b'"to myself"'], [b"%d" % number for number in range(50)])


BODIES = [
    '"ä 漢 🎉"'.encode(),
    '"<b>&amp;</b>\u2028"'.encode(),
    b'"\\u0000\\n\\"\\\\"',
    b"[1.0,1e2,-0,12345678901234567890123]",
    b'{ "a" :\n[ 1 ,\t2 ] }',
    b'"' + b"x" * 2**20 + b'"',
]


async def test_bodies_of_message_and_answer_arrive_as_they_were_sent(
    nodes: tuple[Node, Node],
) -> None:
    one, other = nodes
    bodies = read(other)
    answer_double(other)

    for body in BODIES:
        await one.direct.send(other.uid, "s", body)
        answer = await one.direct.ask(other.uid, "double", body, TIMEOUT)
        assert answer == b"[" + body + b"," + body + b"]"

    await eventually(lambda: len(bodies) == len(BODIES))
    assert bodies == BODIES


async def test_handler_that_fails_is_logged_and_the_next_message_arrives(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = nodes
    bodies = read(other)

    def fail(sender: str, body: bytes) -> None:
        raise LookupError("no such thing")

    other.direct.handle("failing", fail)
    await one.direct.send(other.uid, "failing", b"1")
    await one.direct.send(other.uid, "s", b"2")

    await eventually(lambda: bool(bodies))
    assert bodies == [b"2"]
    assert "no such thing" in caplog.text


# the inbox


async def test_inbox_is_not_listed_as_a_channel(nodes: tuple[Node, Node], unique: str) -> None:
    one, other = nodes
    await other.broker.subscribe(unique)
    assert await one.channels() == [unique]
    assert await other.channels() == [unique]


# an engine that fails


class TroubledLayer(InMemoryChannelLayer):
    """Cannot be reached while a test says so."""

    away = False

    async def group_add(self, group: str, channel: str) -> None:
        if self.away:
            raise ConnectionError("the layer is away")
        await super().group_add(group, channel)

    async def group_send(self, group: str, message: Any) -> None:
        if self.away:
            raise ConnectionError("the layer is away")
        await super().group_send(group, message)


@asynccontextmanager
async def troubled_nodes(
    server: RedisServer, prefix: str
) -> AsyncIterator[tuple[Node, Node, TroubledLayer]]:
    """Two nodes on one third-party layer."""
    foreign = TroubledLayer()
    nodes = [two_step_node(server, prefix, foreign) for _ in range(2)]
    for node in nodes:
        await node.start()
    try:
        yield nodes[0], nodes[1], foreign
    finally:
        foreign.away = False
        for node in nodes:
            await node.stop()


async def test_opening_and_question_that_a_foreign_layer_refused_are_tried_again(
    redis_server: RedisServer, unique: str
) -> None:
    async with troubled_nodes(redis_server, unique) as (one, other, foreign):
        answer_double(other)
        foreign.away = True
        with pytest.raises((EngineUnavailable, ConnectionError)):
            await other.direct.open()
        foreign.away = False
        for node in (one, other):
            await node.direct.open()
        foreign.away = True
        with pytest.raises((EngineUnavailable, ConnectionError)):
            await one.direct.ask(other.uid, "double", b"1", TIMEOUT)
        foreign.away = False
        assert await one.direct.ask(other.uid, "double", b"2", TIMEOUT) == b"[2,2]"


async def test_messages_arrive_again_when_redis_was_restarted(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    async with two_nodes(OWN, [server], unique) as (one, other):
        answer_double(other)
        for node in (one, other):
            await node.direct.open()
        server.kill()
        with pytest.raises(EngineUnavailable):
            await one.direct.ask(other.uid, "double", b"1", TIMEOUT)
        with pytest.raises(EngineUnavailable):
            await one.direct.send(other.uid, "double", b"1")

        server.start()

        async def answered() -> bool:
            with contextlib.suppress(EngineUnavailable):
                return await one.direct.ask(other.uid, "double", b"2", SHORT_TIMEOUT) == b"[2,2]"
            return False

        await comes_true(answered)


# the end


@pytest.mark.parametrize("kind", KINDS)
async def test_node_that_stopped_leaves_nothing_of_its_messages(
    own_redis: Callable[..., RedisServer], unique: str, kind: str
) -> None:
    servers = [own_redis(), own_redis()]
    async with two_nodes(kind, servers, unique) as (one, other):
        answer_double(other)
        for node in (one, other):
            await node.direct.open()
        assert await one.direct.ask(other.uid, "double", b"1", TIMEOUT) == b"[1,1]"

    kept = set[str]().union(*(server.keys() for server in servers))
    engine: Any = one._engine
    keys = engine.shards.keys
    group = keys.group(inbox(one.uid)), keys.group(inbox(other.uid))
    assert {key for key in kept if "node:" in key or any(name in key for name in group)} == set()
    for server in servers:
        assert server.pubsub_channels() == set()
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})


async def test_opening_ends_when_the_node_stops(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    async with two_nodes(OWN, [server], unique) as (_, other):
        server.freeze()
        opening = asyncio.create_task(other.direct.open())
        await asyncio.wait([opening], timeout=0.1)
        assert not opening.done()

        await asyncio.wait_for(other.stop(), 10)
        await asyncio.wait([opening], timeout=20)
        server.resume()

        assert opening.done()
        assert isinstance(opening.exception(), EngineUnavailable)
