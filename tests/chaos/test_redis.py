"""Redis is cut off, restarted, emptied, frozen. Clients must not notice, or be told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.chaos.faults import FAULTS, Fault, frozen, play
from tests.chaos.harness import OPTIONS, chaos
from tests.chaos.publishers import eventually
from tests.redis_server import RedisServer
from tests.server import Server

Cluster = Callable[..., list[Server]]
OwnRedis = Callable[..., RedisServer]

INSUFFICIENT_STATE = 3010


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


CALM: dict[str, Any] = {"redis_connect_timeout": 1, "redis_read_timeout": 1}
OUT_OF_TIME = Fault("Redis frozen beyond the timeouts", partial(frozen, 3.0), CALM)
PLAYED = {fault.name: fault for fault in (*FAULTS, OUT_OF_TIME)}


@pytest.mark.parametrize(
    ("name", "forgets", "closes"),
    [
        ("Redis killed, 3 s away, every write on disk", False, set()),
        ("Redis killed, 3 s away, empty afterwards", True, {INSUFFICIENT_STATE}),
        (OUT_OF_TIME.name, False, set()),
        # the old master goes on for ten seconds, and what it accepts then is dropped
        ("planned failover with `redis_wait_replicas`", False, {INSUFFICIENT_STATE}),
    ],
)
async def test_fault_of_redis_loses_nothing_untold(
    tmp_path_factory: pytest.TempPathFactory, name: str, forgets: bool, closes: set[int]
) -> None:
    verdict = (await play(PLAYED[name], tmp_path_factory)).verdict

    assert verdict.complaints == [], "untold losses, twice, or out of order"
    assert bool(verdict.forgotten) is forgets, "acknowledged, and not in history"
    assert forgets or closes or not verdict.missed
    assert set(verdict.errors) <= {300, 301}  # docs/protocol.md, 5.2
    assert set(verdict.closes) <= closes
    if forgets:
        assert set(verdict.closes) == closes
        assert set(verdict.recovered) == {False}
    if name == OUT_OF_TIME.name:
        # one read and one connect of a second each; ten leave room for a busy machine
        assert verdict.errors
        assert verdict.slowest < 10
