"""Epochs of streams in Redis over restarts of Redis, with and without `redis_epoch_per_run`."""

from __future__ import annotations

from collections.abc import Callable

from realtime.engine.redis.broker import MetaSettings
from realtime.protocol.messages import StreamPosition
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.redis_server import RedisServer

PER_RUN = MetaSettings(epoch_per_run=True)


async def epochs_over_a_restart(engine: RedisBench, channel: str) -> tuple[str, str, str]:
    """Before a restart, read after it, published after it. Connections may fail at first."""
    before = await engine.publish(channel, 1)
    for server in engine.servers:
        server.restart()
    read: StreamPosition | None = None
    while read is None:
        try:
            read = await engine.broker.position(channel)
        except Exception:
            continue  # the connection of before; bounded by the timeout of the test
    after = await engine.publish(channel, 2)
    assert before is not None
    assert after is not None
    assert (read.offset, after.offset) == (1, 2), "Redis kept everything"
    return before.epoch, read.epoch, after.epoch


async def test_epoch_outlives_a_restart_that_lost_nothing(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    engine = await open_redis(servers=[own_redis(persistent=True)])

    assert len(set(await epochs_over_a_restart(engine, unique))) == 1


async def test_epoch_per_run_is_another_one_after_a_restart(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    """Redis without an append-only file may lose its last seconds and not know it."""
    engine = await open_redis(servers=[own_redis(persistent=True)], meta=PER_RUN)

    before, read, published = await epochs_over_a_restart(engine, unique)

    assert read == published
    assert before != read


async def test_epoch_per_run_stays_the_same_within_a_run(
    open_redis: OpenRedisBench, unique: str
) -> None:
    engine = await open_redis(prefix=unique, meta=PER_RUN)
    other = await open_redis(prefix=unique, meta=PER_RUN)
    await engine.broker.subscribe(unique)
    unused = await engine.broker.position(unique)

    first = await engine.publish(unique, 1)
    second = await other.publish(unique, 2)

    assert first == StreamPosition(1, unused.epoch)
    assert second == StreamPosition(2, unused.epoch)
    await engine.received(unique, 2)
    arrived = [position for _, position in engine.receiver.publications[unique]]
    assert arrived == [first, second]


async def test_epoch_per_run_is_another_one_each_time_that_a_server_becomes_the_master(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    """A failover, and one back to the same server, which runs all the time: both lose an end."""
    engine = await open_redis(servers=[own_redis()], meta=PER_RUN)
    before = await engine.publish(unique, 1)
    with engine.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        client.execute_command("REPLICAOF", "NO", "ONE")

    after = await engine.broker.position(unique)

    assert before is not None
    assert after.offset == before.offset
    assert after.epoch != before.epoch


async def test_epoch_per_run_can_be_renewed(open_redis: OpenRedisBench, unique: str) -> None:
    engine = await open_redis(meta=PER_RUN)
    before = await engine.publish(unique, 1)
    assert before is not None

    await engine.broker.renew_epoch(unique, before.epoch)

    renewed = await engine.broker.position(unique)
    assert renewed.epoch != before.epoch
    await engine.broker.renew_epoch(unique, before.epoch)
    assert await engine.broker.position(unique) == renewed
