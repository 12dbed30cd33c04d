"""The end of an engine over Redis: bounded in time, whatever Redis does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from tests.engine.bench import comes_true
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import LAYER_WITHOUT_REDIS, ORDINARY, SHARDS, close_layer
from tests.redis_server import RedisServer

pytestmark = LAYER_WITHOUT_REDIS

STOP_LIMIT = 5.0
"""Seconds; a node as a whole has 6."""


def own_servers(own_redis: Callable[..., RedisServer], kind: str) -> list[RedisServer]:
    return [own_redis() for _ in range(2 if kind == SHARDS else 1)]


@pytest.mark.parametrize("trouble", ["frozen", "killed"])
@pytest.mark.parametrize("kind", ORDINARY)
async def test_engine_stops_in_time_while_redis_is_away(
    own_redis: Callable[..., RedisServer],
    open_redis: OpenRedisBench,
    unique: str,
    kind: str,
    trouble: str,
) -> None:
    servers = own_servers(own_redis, kind)
    engine = await open_redis(kind, servers=servers)
    for number in range(10):
        await engine.broker.subscribe(f"{unique}-{number}")
    for server in servers:
        (server.freeze if trouble == "frozen" else server.kill)()

    begin = time.monotonic()
    stopping = asyncio.create_task(engine.engine.stop())
    done, _ = await asyncio.wait([stopping], timeout=STOP_LIMIT)
    took = time.monotonic() - begin
    for server in servers:
        (server.resume if trouble == "frozen" else server.start)()  # so the fixture can end
    await asyncio.wait([stopping], timeout=10)

    assert done, f"it was not stopped after {took:.1f} s"


@pytest.mark.parametrize("kind", ORDINARY)
async def test_stopped_engine_leaves_no_connection(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str, kind: str
) -> None:
    servers = own_servers(own_redis, kind)
    engine = await open_redis(kind, servers=servers)
    await engine.broker.subscribe(unique)
    await engine.publish(unique, 1)

    await engine.engine.stop()
    if engine.foreign is not None:
        await close_layer(engine.foreign)  # it belongs to the site

    async def only_the_one_that_asks() -> bool:
        counts = []
        for server in servers:
            with server.client() as client:
                counts.append(len(client.client_list()))
        return set(counts) == {1}

    await comes_true(only_the_one_that_asks)


@pytest.mark.parametrize("kind", ORDINARY)
async def test_subscribing_ends_when_the_engine_stops(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str, kind: str
) -> None:
    servers = own_servers(own_redis, kind)
    engine = await open_redis(kind, servers=servers)
    await engine.broker.subscribe(f"{unique}-before")
    for server in servers:
        server.freeze()
    waiting = [
        asyncio.create_task(engine.broker.subscribe(f"{unique}-{number}")) for number in range(3)
    ]
    await asyncio.wait(waiting, timeout=0.1)

    stopping = asyncio.create_task(engine.engine.stop())
    await asyncio.wait([stopping], timeout=STOP_LIMIT)
    done, pending = await asyncio.wait(waiting, timeout=20)
    for server in servers:
        server.resume()
    for task in pending:
        task.cancel()
    await asyncio.wait([*waiting, stopping], timeout=10)
    for task in done:
        task.exception()  # failed or done, either is right

    assert not pending, "they wait forever"


@pytest.mark.parametrize("kind", ORDINARY)
async def test_stopping_twice_and_unsubscribing_afterwards_does_no_harm(
    open_redis: OpenRedisBench, unique: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients that are slow to close come late."""
    engine = await open_redis(kind)
    await engine.broker.subscribe(unique)
    for _ in range(2):
        await engine.engine.stop()

    await engine.broker.unsubscribe(unique)

    assert caplog.text == ""
