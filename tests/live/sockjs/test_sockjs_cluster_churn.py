"""Hundreds of SockJS sessions over two servers leave nothing, and disturb none that stays."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from operator import le

from tests.live.clusters import Cluster, OwnRedis, channels, groups, nodes
from tests.live.memory_parts import count_files, needs_proc
from tests.live.sockjs.client import (
    EVENTSOURCE,
    HEARTBEAT,
    HTMLFILE,
    JSONP,
    OPEN,
    RECEIVING,
    XHR_STREAMING,
    replies,
)
from tests.live.sockjs.nodes import NODES, Wanderer, claims, eventually, publications, publish_all
from tests.server import Server

SESSIONS = 500
AT_ONCE = 20
CHANNELS = 20


async def visit(servers: Sequence[Server], number: int, chance: random.Random) -> None:
    """Begin a session and leave it, each time in another way."""
    session = Wanderer(chance.choices(servers, k=7), chance.choices(servers, k=5))
    assert await session.poll(chance.choice((JSONP, RECEIVING[0]))) == OPEN
    if number % 5 == 0:
        return
    await session.command("connect")
    await session.command("subscribe", channel=f"present:{chance.randrange(CHANNELS)}")
    match number % 5:
        case 1:  # all is said, and nobody comes for the answer
            return
        case 2:  # the server closes it
            while not (frame := await session.poll()).startswith("c["):
                if frame != HEARTBEAT and 2 in [reply.get("id") for reply in replies(frame)]:
                    await session.send("not a command")
        case 3:  # a stream breaks off before anything came
            exchange = await session.ask(chance.choice((XHR_STREAMING, EVENTSOURCE, HTMLFILE)))
            await exchange.abort()
        case 4:  # and after something has come
            async with session.receive(XHR_STREAMING) as receiver:
                await receiver.frame()


async def churn(servers: Sequence[Server]) -> None:
    chance = random.Random(1)
    numbers = iter(range(SESSIONS))

    async def visit_on() -> None:
        for number in numbers:
            await visit(servers, number, chance)

    await asyncio.gather(*(visit_on() for _ in range(AT_ONCE)))


def clients(server: Server) -> list[int]:
    """Clients of each node."""
    return [node["num_clients"] for node in nodes(server)]


@needs_proc
async def test_hundreds_of_sessions_leave_nothing_and_disturb_none_that_stays(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    redis = own_redis()
    servers = cluster(2, redis, redis_prefix=unique, sockjs_heartbeat_delay=1, **NODES)
    await eventually(lambda: [len(nodes(server)) for server in servers] == [2, 2], "two nodes")
    staying = Wanderer([servers[0]], servers)
    await staying.subscribe(f"long:{unique}")
    staying.move([servers[1]], servers)
    began = groups(redis), claims(redis, unique)
    assert len(began[1]) == 1
    beats = 0

    async with staying.receive(XHR_STREAMING) as receiver:
        files = [*map(count_files, servers)]
        churning = asyncio.create_task(churn(servers))
        while not churning.done():
            beats += await receiver.frame() == HEARTBEAT
        await churning
        await eventually(lambda: sum(clients(servers[0])) == 1, "the end of all other clients")
        await eventually(lambda: channels(servers[1], "present") == [], "empty channels")
        await eventually(lambda: claims(redis, unique) == began[1], "the end of all claims")
        await eventually(lambda: groups(redis) == began[0], "the end of all other groups")
        # fewer: in the beginning the sockets of the last requests may still have been closing
        await eventually(
            lambda: all(map(le, map(count_files, servers), files)), "the end of all sockets"
        )
        await publish_all(servers[0], f"long:{unique}", [1])
        while (frame := await receiver.frame()) == HEARTBEAT:
            beats += 1

    assert publications(frame) == [1]
    assert beats >= 3
    await eventually(lambda: claims(redis, unique) == [], "the end of the last claim")
    assert not [key for key in redis.keys() if "presence" in key]  # noqa: SIM118
    assert [server.log.count("Traceback") for server in servers] == [0, 0]
