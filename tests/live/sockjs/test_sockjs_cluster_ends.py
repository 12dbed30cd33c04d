"""SockJS sessions at several servers, one of which is killed or ends; and without Redis.

A client whose session is interrupted, or cannot be reached, opens another one and recovers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from realtime.node.node import SHUTDOWN_TIMEOUT
from tests.live.clusters import Cluster, OwnRedis
from tests.live.raw_http import Exchange
from tests.live.sockjs.client import (
    HEARTBEAT,
    INTERRUPTED,
    SHUTDOWN,
    XHR,
    XHR_STREAMING,
    command,
    replies,
)
from tests.live.sockjs.nodes import NODES, TIMEOUT, Wanderer, publications, publish_all
from tests.redis_server import RedisServer
from tests.server import Server

NOTICED = 7.0
"""Seconds within which a client learns that the node of its session has died."""
REFUSED = 4.5
"""Seconds within which a request is refused while Redis is away: client libraries wait for 5."""
SLACK = 10.0
"""Seconds that a busy machine may add."""
KINDS = pytest.mark.parametrize("kind", ["daphne", "uvicorn"])


async def recover(server: Server, channel: str, position: dict[str, Any]) -> list[Any]:
    """Open another session and recover what was published after a position."""
    session = Wanderer([server])
    result = await session.subscribe(channel, recover=True, **position)
    assert result["recovered"] is True
    return [publication["data"] for publication in result.get("publications", [])]


async def position(session: Wanderer, channel: str) -> dict[str, Any]:
    """Begin a session with a subscription; returns where that begins."""
    result = await session.subscribe(channel)
    return {"epoch": result["epoch"], "offset": result.get("offset", 0)}


async def test_client_whose_owner_is_killed_learns_it_and_recovers_everything(
    cluster: Cluster, own_redis: OwnRedis, unique: str
) -> None:
    owner, relay, third = cluster(3, own_redis(), **NODES)
    channel = f"long:{unique}"
    streaming, polling, idle = (Wanderer([owner]) for _ in range(3))
    since = await position(streaming, channel)
    for session in (polling, idle):
        await session.subscribe(channel)
    for session in (streaming, polling, idle):
        session.move([relay])
    await publish_all(third, channel, range(100))
    await polling.poll_publications(100)
    waiting = asyncio.create_task(polling.poll())

    async with streaming.receive(XHR_STREAMING) as receiver:
        while len(streaming.received) < 100:
            streaming.received += publications(await receiver.frame())
        began = time.monotonic()
        await asyncio.to_thread(owner.kill)
        publishing = asyncio.create_task(publish_all(third, channel, range(100, 150)))
        told = asyncio.gather(receiver.frame(), waiting, idle.poll())
        assert [*await told] == [INTERRUPTED] * 3
        assert time.monotonic() - began < NOTICED + SLACK
        await receiver.end()
    await publishing
    await publish_all(relay, channel, range(150, 200))

    assert streaming.received == polling.received == [*range(100)]
    assert await recover(relay, channel, since) == [*range(200)]
    since["offset"] += len(streaming.received)
    assert await recover(third, channel, since) == [*range(100, 200)]


async def end(server: Server) -> float:
    """Send SIGTERM and wait for the end; returns the seconds it took."""
    began = time.monotonic()
    await asyncio.to_thread(server.terminate)
    return time.monotonic() - began


async def attached(sessions: list[Wanderer]) -> list[Exchange]:
    """A polling request and a streaming one, both taken: another receiver is refused then."""
    exchanges = [
        await session.ask(transport)
        for session, transport in zip(sessions, (XHR, XHR_STREAMING), strict=True)
    ]
    for session in sessions:
        while not (await session.poll()).startswith("c[2010,"):
            pass
    return exchanges


async def bodies(exchanges: list[Exchange]) -> list[str]:
    """What comes up to the end of the responses, without preludes."""
    found = []
    for exchange in exchanges:
        await exchange.begin()
        found.append((await exchange.rest()).decode().removeprefix("h" * 2048 + "\n"))
        await exchange.close()
    return found


@KINDS
async def test_sessions_go_on_when_their_relay_server_stops_and_get_shutdown_from_their_owner(
    cluster: Cluster, own_redis: OwnRedis, unique: str, kind: str
) -> None:
    owner, relay = cluster(2, own_redis(), server=kind, **NODES)
    channel = f"long:{unique}"
    sessions = [Wanderer([owner]) for _ in range(2)]
    for session in sessions:
        await session.subscribe(channel)
        session.move([relay])
    exchanges = await attached(sessions)

    took = asyncio.create_task(end(relay))
    assert {*await bodies(exchanges)} <= {"", f"{HEARTBEAT}\n"}
    for session in sessions:
        session.move([owner])
    await publish_all(owner, channel, range(10))
    for session in sessions:
        await session.poll_publications(10)
        assert session.received == [*range(10)]
    assert await took < SHUTDOWN_TIMEOUT + SLACK

    exchanges = await attached(sessions)
    took = asyncio.create_task(end(owner))
    assert await bodies(exchanges) == [f"{SHUTDOWN}\n"] * 2
    assert await took < SHUTDOWN_TIMEOUT + SLACK


def away(redis: RedisServer) -> Callable[[], object]:
    redis.kill()
    return redis.start


def frozen(redis: RedisServer) -> Callable[[], object]:
    redis.freeze()
    return redis.resume


async def status(session: Wanderer) -> int:
    """The status of a polling request."""
    exchange = await session.ask(XHR)
    try:
        await exchange.begin()
        return exchange.status
    finally:
        await exchange.close()


@pytest.mark.parametrize("lose", [away, frozen])
async def test_sessions_at_their_own_server_go_on_without_redis_and_others_are_refused(
    cluster: Cluster,
    own_redis: OwnRedis,
    unique: str,
    lose: Callable[[RedisServer], Callable[[], object]],
) -> None:
    """They are refused in time; and all is well when Redis is there again."""
    redis = own_redis()
    one, other = cluster(2, redis, **NODES)
    local, remote = Wanderer([one]), Wanderer([one])
    for session in (local, remote):
        await session.subscribe(unique)
    remote.move([other])
    restore = await asyncio.to_thread(lose, redis)

    async with local.receive(XHR_STREAMING) as receiver:
        number = await local.command("ping")
        assert number in [reply["id"] for reply in replies(await receiver.frame())]
        began = time.monotonic()
        answers = await asyncio.gather(
            status(remote),
            status(Wanderer([other])),
            remote.post(json.dumps([command(9, "ping")]).encode()),
        )
        assert time.monotonic() - began < REFUSED + SLACK
        assert (*answers[:2], answers[2].status) == (503, 503, 503)

        await asyncio.to_thread(restore)
        number = await local.command("ping")
        while number not in [reply.get("id") for reply in replies(await receiver.frame())]:
            pass

    deadline = time.monotonic() + TIMEOUT
    while await status(Wanderer([other])) != 200:
        assert time.monotonic() < deadline, "no session begins though Redis is there"
