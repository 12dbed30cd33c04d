"""Redis is cut off, restarted, emptied, frozen. Clients must not notice, or be told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.chaos.harness import OPTIONS, Chaos, chaos
from tests.chaos.publishers import eventually
from tests.redis_server import RedisServer
from tests.server import Server

Cluster = Callable[..., list[Server]]
OwnRedis = Callable[..., RedisServer]

ENGINE_AWAY = (300, 301)
"""The errors of a command when the engine fails. docs/protocol.md, 5.2."""
INSUFFICIENT_STATE = 3010


def assert_only_internal_errors(everybody: Chaos) -> None:
    """Every request was answered; what failed got the error for it."""
    for failure in everybody.publishers.failures:
        assert json.loads(failure.error)["error"]["code"] in ENGINE_AWAY, failure


async def test_nothing_is_lost_when_redis_cuts_the_subscriptions_again_and_again(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    redis = own_redis()
    servers = cluster(2, redis, **OPTIONS)
    async with chaos(servers, [f"rec:{unique}a", f"rec:{unique}b"]) as everybody:
        subscribed = redis.pubsub_channels()
        connections = redis.pubsub_connections()
        everybody.publishers.start()
        for _ in range(20):
            await eventually(
                lambda: (
                    redis.pubsub_connections() == connections
                    and redis.pubsub_channels() == subscribed
                ),
                "both servers are subscribed again",
            )
            await everybody.publishers.progress(3)
            assert redis.kill_pubsub() == connections
            await everybody.publishers.progress(3)
        await everybody.settle()

        assert everybody.publishers.failures == []
        assert everybody.subscribers.closes == []


@pytest.mark.parametrize("end", [RedisServer.stop, RedisServer.kill], ids=["SIGTERM", "SIGKILL"])
async def test_nothing_acknowledged_is_lost_when_a_persistent_redis_is_restarted(
    cluster: Cluster, own_redis: OwnRedis, unique: str, end: Callable[[RedisServer], None]
) -> None:
    redis = own_redis(persistent=True)
    servers = cluster(2, redis, **OPTIONS)
    async with chaos(servers, [f"rec:{unique}a", f"rec:{unique}b"]) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(50)

        await asyncio.to_thread(end, redis)
        await everybody.publishers.trouble()
        await asyncio.to_thread(redis.start)
        await everybody.publishers.progress(50)
        await everybody.settle()

        assert_only_internal_errors(everybody)
        assert everybody.subscribers.closes == []


async def test_clients_learn_that_an_emptied_redis_lost_their_place_and_go_on(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    redis = own_redis()
    servers = cluster(2, redis, **OPTIONS)
    async with chaos(servers, [f"rec:{unique}a", f"rec:{unique}b"]) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(25)
        await everybody.settle()
        assert everybody.subscribers.recovered == [], "nobody had to recover so far"

        await asyncio.to_thread(redis.restart, empty=True)
        await eventually(
            lambda: all(
                one.recovered[channel]
                for one in everybody.subscribers.all
                for channel in one.channels
            ),
            "everybody has tried to recover",
        )
        await everybody.subscribers.live()
        assert set(everybody.subscribers.recovered) == {False}
        assert set(everybody.subscribers.closes) == {INSUFFICIENT_STATE}
        before = everybody.subscribers.closes

        everybody.publishers.start()
        await everybody.publishers.progress(25)
        await everybody.settle()

        assert everybody.subscribers.closes == before
        for subscriber in everybody.subscribers.all:
            for channel in subscriber.channels:
                first, *_, last = subscriber.received[channel]
                assert first.epoch != last.epoch, subscriber.story
                anew = [one for one in subscriber.received[channel] if one.epoch == last.epoch]
                assert anew[0].offset == 1, subscriber.story


async def test_frozen_redis_gives_publishers_errors_in_time_and_costs_nobody_anything(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    redis = own_redis()
    servers = cluster(2, redis, redis_connect_timeout=1, redis_read_timeout=1, **OPTIONS)
    async with chaos(servers, [f"rec:{unique}a", f"rec:{unique}b"], patience=30.0) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(50)

        redis.freeze()
        try:
            await everybody.publishers.trouble()
            await everybody.publishers.trouble()
        finally:
            redis.resume()
        await everybody.publishers.progress(50)
        await everybody.settle()

        assert_only_internal_errors(everybody)
        # one read and one connect of a second each; ten leave room for a busy machine
        assert max(failure.seconds for failure in everybody.publishers.failures) < 10
        assert everybody.subscribers.closes == []
