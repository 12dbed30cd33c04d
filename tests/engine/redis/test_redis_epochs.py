"""Epochs of streams in Redis: over restarts, and of channels without publications."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.config.reader import load
from realtime.engine.redis import opening
from realtime.engine.redis.broker import MetaSettings
from realtime.protocol.messages import StreamPosition
from realtime.streams.follower import StreamFollower
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.redis_server import RedisServer
from tests.unit.parts import position_of

HOUR = 3600
PER_RUN = MetaSettings(epoch_per_run=True)


async def epochs_over_a_restart(engine: RedisBench, channel: str) -> tuple[str, str, str]:
    """Before a restart, read after it, published after it. Connections may fail at first."""
    before = await engine.publish(channel, 1)
    for server in engine.servers:
        server.restart()
    read: StreamPosition | None = None
    while read is None:
        try:
            read = await position_of(engine.broker, channel)
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
    unused = await position_of(engine.broker, unique)

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

    after = await position_of(engine.broker, unique)

    assert before is not None
    assert after.offset == before.offset
    assert after.epoch != before.epoch


async def test_epoch_per_run_can_be_renewed_once(open_redis: OpenRedisBench, unique: str) -> None:
    engine = await open_redis(meta=PER_RUN)
    before = await engine.publish(unique, 1)
    assert before is not None

    await engine.broker.renew_epoch(unique, before.epoch)
    renewed = await position_of(engine.broker, unique)
    await engine.broker.renew_epoch(unique, before.epoch)

    assert await position_of(engine.broker, unique) == renewed
    assert renewed.epoch != before.epoch


# channels without publications


async def test_name_that_a_client_only_mentions_is_soon_forgotten(
    open_redis: OpenRedisBench, unique: str
) -> None:
    engine = await open_redis(meta=MetaSettings(10 * HOUR, glanced_lifetime=120))
    follower = StreamFollower(engine.broker, unique, lambda _: None, lambda: None)
    meta = engine.keys.stream(unique)[1]

    with engine.client() as client:
        await follower.start()
        await engine.broker.history(unique, 1)
        mentioned = client.ttl(meta)
        await follower.check()
        followed = client.ttl(meta)
        await engine.broker.history(unique, limit=0)
        mentioned_again = client.ttl(meta)

    assert 110 < mentioned <= 120
    assert HOUR - 10 < mentioned_again <= followed <= HOUR
    assert follower.position is not None
    assert await engine.publish(unique, 1) == StreamPosition(1, follower.position.epoch)


async def test_position_that_the_site_asks_for_is_remembered_for_an_hour(
    open_redis: OpenRedisBench, unique: str
) -> None:
    engine = await open_redis(meta=MetaSettings(10 * HOUR, glanced_lifetime=120))
    await engine.broker.positions([unique], at=1)
    with engine.client() as client:
        assert HOUR - 10 < client.ttl(engine.keys.stream(unique)[1]) <= HOUR


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 130),
        ({"client_presence_ping_interval": 1, "client_channel_position_check_delay": 1}, 120),
        ({"client_channel_position_check_delay": 600}, 1250),
        ({"client_channel_position_check_delay": 0}, HOUR),
    ],
)
def test_name_is_remembered_longer_than_from_a_check_to_the_next(
    options: dict[str, int], seconds: int
) -> None:
    meta = opening._meta(load(options))
    assert meta.glanced_lifetime == meta.kept(60) == seconds


@pytest.mark.parametrize(
    ("own", "lifetime", "seconds"), [(0, 300, 0), (70, 0, 70), (70, 300, 600), (700, 300, 700)]
)
def test_position_lives_as_the_option_of_its_channel_says(
    own: int, lifetime: int, seconds: int
) -> None:
    chat = {"name": "chat", "history_size": 5, "history_lifetime": lifetime}
    meta = opening._meta(load({"namespaces": [chat | {"history_meta_ttl": own}]}))
    assert meta.own_lifetime("chat:1") == seconds
    assert meta.own_lifetime("plain") == meta.own_lifetime("nowhere:1") == 0
