"""Rates of users over two nodes, one of which is killed, and while Redis hangs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.live.clusters import SERVICE, Cluster, OwnRedis
from tests.live.configurations import Connect
from tests.redis_server import RedisServer
from tests.server import wait_until

TOO_MANY = 111
BURST, INTERVAL = 30, 600.0
"""Nothing comes back while a test lasts."""
RATES = {"user_command_rates": f"rpc 6/h burst {BURST}"}


async def runs(client: Any) -> bool:
    """Whether a command of a client is not refused by a rate."""
    error = await client.error("rpc", {"method": "none"})
    return bool(error["code"] != TOO_MANY)


def debt(redis: RedisServer) -> float:
    """The seconds for which the only user in Redis owes."""
    with redis.client() as client:
        scores = [score for _, score in client.zrange(KEY, 0, -1, withscores=True)]
    return max(scores, default=0.0) / 1000 - time.time()


KEY = f"{SERVICE['redis_prefix']}:debts"


async def test_user_has_one_rate_at_two_nodes_and_nothing_waits_for_redis(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, **SERVICE | RATES)
    here, there = await connect(one, user=unique), await connect(other, user=unique)

    at_one = [await runs(here) for _ in range(BURST + 1)]
    wait_until(lambda: debt(redis) > (BURST - 0.5) * INTERVAL, what="what the node tells")
    one.kill()
    # the other node hears of it when it tells what was taken there
    at_other = 0
    while await runs(there):
        at_other += 1
        await asyncio.sleep(0.2)

    stranger = await connect(other, user=f"{unique}b")
    with redis.frozen():
        while_frozen = [await runs(stranger) for _ in range(BURST + 1)]

    assert at_one == while_frozen == [True] * BURST + [False]
    assert at_other < BURST
