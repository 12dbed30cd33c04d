"""A server process dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.chaos.harness import OPTIONS, chaos
from tests.redis_server import RedisServer
from tests.server import Server

Cluster = Callable[..., list[Server]]
OwnRedis = Callable[..., RedisServer]


async def test_clients_of_a_killed_server_recover_everything_at_the_other_one(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    servers = cluster(2, own_redis(), **OPTIONS)
    async with chaos(servers, [f"rec:{unique}a", f"rec:{unique}b"]) as everybody:
        begun_at_victim = everybody.subscribers.all[1::2]
        everybody.publishers.start()
        await everybody.publishers.progress(50)

        await asyncio.to_thread(servers[1].kill)
        await everybody.publishers.progress(50)
        await everybody.subscribers.live()
        await everybody.publishers.progress(10)
        await everybody.settle()

        assert everybody.publishers.failures != [], "somebody was publishing at the victim"
        for subscriber in everybody.subscribers.all:
            was_cut = subscriber in begun_at_victim
            assert subscriber.closes == ([1006] if was_cut else []), subscriber.story
            for channel in subscriber.channels:
                assert subscriber.recovered[channel] == ([True] if was_cut else []), (
                    subscriber.story
                )
