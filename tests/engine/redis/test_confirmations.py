"""Publications that wait for replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from realtime.engine.base import Outgoing, Published
from realtime.engine.redis.broker import MetaSettings
from realtime.engine.redis.engine import RedisStore
from realtime.errors import NoReply
from realtime.protocol.messages import Publication
from realtime.redis.commands import Wait
from realtime.serving import run_by_hand
from tests.engine.bench import KEPT, PLAIN
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.redis_server import RedisServer, replica_of
from tests.unit.parts import data, position_of

META = MetaSettings(wait=Wait(1, 1500))
PATIENT = MetaSettings(wait=Wait(1, 4000))

Pair = tuple[RedisBench, RedisServer]


@pytest.fixture
async def pair(own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench) -> Pair:
    """An engine over a Redis, and the replica of that."""
    master = own_redis()
    return await open_redis(servers=[master], meta=META), replica_of(own_redis, master)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "confirmed" in record.getMessage()]


async def test_outage_of_the_replicas_is_counted_and_logged_once(
    pair: Pair, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "realtime.engine")
    engine, replica = pair
    await engine.publish(unique, 1)
    for round_number in (1, 2):
        with replica.frozen():
            for number in range(2):
                with pytest.raises(NoReply):
                    await engine.publish(unique, number)
        await engine.publish(unique, 5)

        lines = logged(caplog)
        assert len(lines) == 2 * round_number
        assert "0 of 1 replicas confirmed it within 1500 ms" in lines[-2]
        assert "2 were not confirmed" in lines[-1]


async def test_reading_does_not_wait_while_a_publication_waits(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    master = own_redis()
    engine = await open_redis(servers=[master], meta=PATIENT)
    replica = replica_of(own_redis, master)
    with replica.frozen():
        waiting = asyncio.create_task(engine.publish(unique, 1))
        while (await position_of(engine.broker, unique)).offset == 0:
            await asyncio.sleep(0)
        await engine.presence.get(unique)
        assert not waiting.done()
    await waiting


async def test_of_several_publications_only_those_that_are_kept_are_unknown(
    pair: Pair, unique: str
) -> None:
    engine, replica = pair
    blocking = RedisStore(engine.layer.bus, engine.prefix, META)

    def several() -> list[Outgoing]:
        return [
            Outgoing(f"{unique}-{name}", Publication(data("1")), options)
            for name, options in (("a", KEPT), ("plain", PLAIN), ("b", KEPT))
        ]

    async def in_thread() -> list[Any]:
        return await asyncio.to_thread(run_by_hand, blocking.broker.publish_many(several()))

    ways = (lambda: engine.broker.publish_many(several()), in_thread)
    for publish in ways:
        results = [result for result in await publish() if isinstance(result, Published)]
        assert [bool(result.position) for result in results] == [True, False, True]
    replica.freeze()
    try:
        for publish in ways:
            kinds = [type(result) for result in await publish()]
            assert [issubclass(kind, NoReply) for kind in kinds] == [True, False, True]
    finally:
        replica.resume()
        engine.layer.bus.close_blocking()
