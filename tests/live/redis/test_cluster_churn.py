"""Hundreds of short connections leave nothing behind: no group, key, connection or memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from operator import le
from typing import Any

from websockets.exceptions import ConnectionClosed

from realtime.channel_rules import CONTROL
from tests.conftest import connection_token
from tests.live.clusters import Cluster, OwnRedis, channels, groups, nodes
from tests.live.memory_parts import APPLICATION, count_files, left, needs_proc, settled
from tests.protocol_client import Closed, ProtocolClient, open_client
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

OPTIONS: dict[str, Any] = {
    "redis_prefix": "churn",
    "v3_use_offset": True,
    "namespaces": [
        {"name": "plain"},
        {"name": "present", "presence": True, "join_leave": True},
        {
            "name": "kept",
            "presence": True,
            "publish": True,
            "history_size": 10,
            "history_lifetime": 1,
            "history_recover": True,
        },
    ],
}

ROUND = 300
"""Connections of a round, over both servers."""
LEAK = ROUND // 2 // 2
"""Objects of ours in a server after a round that are a leak: one of every second connection.
Those that come and go, such as timers, are some 50."""
LEAK_BLOCKS = ROUND // 2 * 40
"""Pieces of memory that are one: 40 of every connection, which has hundreds."""
TROUBLED = 200
"""Connections while others make trouble."""
AT_ONCE = 40
NAMES = 100
"""Channels of each namespace."""
USERS = 50


class Visitor:
    """Connects, subscribes, publishes and goes, each time in another way."""

    def __init__(self, servers: Sequence[Server], seed: int) -> None:
        self._servers = servers
        self._random = random.Random(seed)

    async def visit(self, number: int) -> None:
        choose = self._random.randrange
        name = choose(NAMES)
        token = connection_token(f"{choose(USERS)}", channels=[f"present:side{name}"])
        wanted = [f"plain:{name}", f"present:{name}", f"kept:{name}"]
        async with open_client(self._servers[number % 2].socket, connected=False) as client:
            commands: list[tuple[str, dict[str, Any]]] = [
                ("connect", {"token": token}),
                *(("subscribe", {"channel": channel}) for channel in wanted),
                ("publish", {"channel": f"kept:{name}", "data": number}),
                ("unsubscribe", {"channel": wanted[number % 3]}),
            ]
            await client.send_together(*commands)
            await self._wait(client, len(commands) if number % 4 else choose(len(commands)))
            if number % 2:
                await client.abort()

    async def _wait(self, client: ProtocolClient, replies: int) -> None:
        """Wait for so many replies; all of them must be good."""
        for _ in range(replies):
            reply = await client.reply()
            assert "error" not in reply, reply


async def churn(
    servers: Sequence[Server], visits: int, seed: int, *, may_be_closed: bool = False
) -> None:
    """One round of visits; returns when the servers have noticed the end of each."""
    visitor = Visitor(servers, seed)
    numbers = iter(range(visits))

    async def visit_on() -> None:
        for number in numbers:
            try:
                await visitor.visit(number)
            except (Closed, ConnectionClosed):
                assert may_be_closed

    await asyncio.gather(*(visit_on() for _ in range(AT_ONCE)))
    wait_until(lambda: all(map(is_empty, servers)), what="the end of all connections")


def is_empty(server: Server) -> bool:
    """Whether a server has no connections, and no channel anywhere has subscribers."""
    [own] = [node for node in nodes(server) if node["name"].endswith(f"_{server.pid}")]
    counts = [own[f"num_{what}"] for what in ("clients", "users", "channels")]
    return counts == [0, 0, 0] and channels(server, "") == []


async def make_trouble(
    servers: Sequence[Server], redis: RedisServer, enough: asyncio.Event
) -> None:
    """Disconnect and unsubscribe users, cut pub/sub, again and again."""
    for number in count():
        if enough.is_set():
            return
        if number % 20 == 10:
            await asyncio.to_thread(redis.kill_pubsub)
        method = ("disconnect", "unsubscribe")[number % 2]
        user = str(number % USERS)
        reply = await asyncio.to_thread(servers[number // 2 % 2].api, method, user=user)
        assert reply == {"result": {}}


def lasting_keys(redis: RedisServer) -> set[str]:
    """Every key but what is kept on purpose: the positions of channels that were published
    into, and what nodes told each other."""
    remains = (":meta:kept:", CONTROL)
    return {key for key in redis.keys() if not any(r in key for r in remains)}  # noqa: SIM118


def connections(redis: RedisServer) -> int:
    """Connections to Redis, but for the one that asks."""
    with redis.client() as client:
        return len(client.client_list()) - 1


@needs_proc
async def test_hundreds_of_short_connections_leave_nothing_behind(
    cluster: Cluster, own_redis: OwnRedis
) -> None:
    redis = own_redis()
    servers = cluster(2, redis, application=APPLICATION, **OPTIONS)
    wait_until(lambda: [len(nodes(server)) for server in servers] == [2, 2], what="two nodes")
    began = lasting_keys(redis), groups(redis), connections(redis), [*map(count_files, servers)]
    assert set(began[1].values()) == {2}
    assert began[2] == 4, "each node has a connection for commands and one for pub/sub"

    await churn(servers, ROUND, seed=0)  # after which a server has made what it keeps
    before = [await left(server) for server in servers]
    await churn(servers, ROUND, seed=1)

    # the last streams live for a second
    wait_until(lambda: lasting_keys(redis) == began[0], what="the end of all other keys")
    wait_until(lambda: groups(redis) == began[1], what="the end of all other groups")
    assert connections(redis) == began[2]
    # fewer: in the beginning the sockets of the last requests may still have been closing
    wait_until(
        lambda: all(map(le, map(count_files, servers), began[3])), what="the end of all sockets"
    )
    assert [server.log.count("Traceback") for server in servers] == [0, 0]
    for server, counts in zip(servers, before, strict=True):
        await settled(server, partial(is_as_before, counts))


def is_as_before(before: Mapping[str, int], counts: Mapping[str, int]) -> bool:
    """Whether no connection left anything in a server's memory."""
    return (
        counts["Client"] == 0
        and counts["tasks"] <= before["tasks"]
        and counts["ours"] < before["ours"] + LEAK
        and counts["blocks"] < before["blocks"] + LEAK_BLOCKS
    )


async def test_connections_that_end_amid_trouble_leave_nothing_behind(
    cluster: Cluster, own_redis: OwnRedis
) -> None:
    redis = own_redis()
    options = OPTIONS | {"redis_prefix": "trouble"}
    servers = [cluster(1, redis, server=kind, **options)[0] for kind in ("daphne", "uvicorn")]
    wait_until(lambda: [len(nodes(server)) for server in servers] == [2, 2], what="two nodes")
    began = lasting_keys(redis), groups(redis), connections(redis)

    enough = asyncio.Event()
    trouble = asyncio.create_task(make_trouble(servers, redis, enough))
    await churn(servers, TROUBLED, seed=3, may_be_closed=True)
    enough.set()
    await trouble

    wait_until(lambda: lasting_keys(redis) == began[0], what="the end of all other keys")
    wait_until(lambda: groups(redis) == began[1], what="the end of all other groups")
    wait_until(lambda: connections(redis) == began[2], what="both nodes' connections alone")
    assert [server.log.count("Traceback") for server in servers] == [0, 0]
