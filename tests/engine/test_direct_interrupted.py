"""Direct messages while an engine fails: opening the inbox, interruptions, and the end."""

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
from tests.engine.direct_parts import KINDS, SHORT_TIMEOUT, TIMEOUT, answer_double, read
from tests.engine.layered_nodes import OWN, two_nodes, two_step_node
from tests.redis_server import RedisServer
from tests.unit.parts import eventually

# the inbox


async def test_openings_at_the_same_time_are_one(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    async with two_nodes(OWN, [server], unique) as (one, other):
        before = server.command_calls()["subscribe"]

        await asyncio.gather(*(other.direct.open() for _ in range(10)))
        await other.direct.open()

        assert server.command_calls()["subscribe"] - before == 1
        bodies = read(other)
        await one.direct.send(other.uid, "s", b"1")
        await eventually(lambda: bool(bodies))
        assert bodies == [b"1"]


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


async def test_opening_that_a_foreign_layer_refused_is_tried_again(
    redis_server: RedisServer, unique: str
) -> None:
    async with troubled_nodes(redis_server, unique) as (one, other, foreign):
        bodies = read(other)
        foreign.away = True
        with pytest.raises((EngineUnavailable, ConnectionError)):
            await other.direct.open()

        foreign.away = False
        await other.direct.open()
        await one.direct.send(other.uid, "s", b"1")

        await eventually(lambda: bool(bodies))


async def test_question_a_foreign_layer_does_not_take_fails_and_the_next_is_answered(
    redis_server: RedisServer, unique: str
) -> None:
    async with troubled_nodes(redis_server, unique) as (one, other, foreign):
        answer_double(other)
        for node in (one, other):
            await node.direct.open()
        foreign.away = True
        with pytest.raises((EngineUnavailable, ConnectionError)):
            await one.direct.ask(other.uid, "double", b"1", TIMEOUT)

        foreign.away = False

        assert await one.direct.ask(other.uid, "double", b"2", TIMEOUT) == b"[2,2]"


async def test_opening_while_redis_is_away_fails_and_is_tried_again(
    own_redis: Callable[..., RedisServer], unique: str
) -> None:
    server = own_redis()
    async with two_nodes(OWN, [server], unique, timeout=1.5) as (one, other):
        bodies = read(other)
        server.freeze()
        opening = await asyncio.gather(
            other.direct.open(), other.direct.open(), return_exceptions=True
        )
        server.resume()
        assert [type(result) for result in opening] == [EngineUnavailable] * 2

        await other.direct.open()
        await one.direct.send(other.uid, "s", b"1")

        await eventually(lambda: bool(bodies))


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


async def test_node_stops_in_time_while_a_question_waits(
    redis_server: RedisServer, unique: str
) -> None:
    async with two_nodes(OWN, [redis_server], unique) as (one, other):
        for node in (one, other):
            await node.direct.open()
        asked = read(other)

        async def ask() -> None:
            await one.direct.ask(other.uid, "s", b"1", 1000.0)

        asking = one.spawn(ask())
        await eventually(lambda: bool(asked))

        await asyncio.wait_for(one.stop(), 10)
        await asyncio.wait([asking], timeout=20)

        assert asking.cancelled()
