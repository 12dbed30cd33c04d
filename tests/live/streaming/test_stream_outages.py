"""Streams whose requests come to another node, while Redis is away or frozen between the two."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.clusters import OwnRedis
from tests.live.streaming.client import (
    HTTP_STREAM,
    SSE,
    STREAMS,
    Stream,
    connect_command,
    frame_of,
    streaming,
)
from tests.server import TIMEOUT, Server

Cluster = Callable[..., list[Server]]

SDK_TIMEOUT = 5.0
"""Seconds that SDKs wait for the reply to a command."""
PAUSE = 0.02


class Judge:
    """Sends numbered commands to a node that does not have the stream, and notes what it gets."""

    def __init__(self, stream: Stream, node: Server) -> None:
        self._stream = stream
        self._node = node
        self.statuses: dict[int, int] = {}
        self.slowest = 0.0
        self.replies: set[int] = set()
        self.pushes: list[Any] = []

    async def ask(self, number: int) -> int:
        began = time.monotonic()
        command = {"id": number, "presence": {"channel": "present:17"}}
        self.statuses[number] = await self._stream.emulate(self._node, command)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return self.statuses[number]

    async def read(self) -> None:
        while True:
            message = await self._stream.message()
            if "id" in message:
                self.replies.add(message["id"])
            elif message:
                self.pushes.append(message)

    @property
    def taken(self) -> set[int]:
        return {number for number, status in self.statuses.items() if status == 204}


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE])
async def test_live_session_is_not_denied_when_redis_comes_back_empty(
    cluster: Cluster, own_redis: OwnRedis, path: str
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, **STREAMS)
    async with streaming(one, path, frame_of(connect_command())) as stream:
        await stream.connected()
        judge = Judge(stream, other)
        reading = asyncio.create_task(judge.read())
        assert await judge.ask(2) == 204

        await asyncio.to_thread(redis.restart, empty=True)
        number = 2
        async with asyncio.timeout(TIMEOUT):
            while list(judge.statuses.values())[-5:] != [204] * 5 or number < 10:
                number += 1
                await judge.ask(number)
                await asyncio.sleep(PAUSE)
            while not judge.taken <= judge.replies:
                await asyncio.sleep(PAUSE)
        reading.cancel()

    assert set(judge.statuses.values()) <= {204, 503}, judge.statuses
    assert judge.pushes == []
    assert judge.slowest < SDK_TIMEOUT


async def test_session_outlives_a_frozen_redis_that_holds_its_pongs_back(
    cluster: Cluster, own_redis: OwnRedis
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, ping_interval=7, pong_timeout=5, **STREAMS)
    async with (
        streaming(one, HTTP_STREAM, frame_of(connect_command())) as stream,
        streaming(one, HTTP_STREAM, frame_of(connect_command())) as silent,
    ):
        await stream.connected()
        await silent.connected()
        judge = Judge(stream, other)
        assert await judge.ask(2) == 204
        pings = 0
        answering: set[asyncio.Task[int]] = set()

        async def answer_pings() -> None:
            nonlocal pings
            while True:
                message = await stream.message()
                if message == {}:
                    pings += 1
                    answering.add(asyncio.create_task(stream.emulate(other, {})))
                elif "id" in message:
                    judge.replies.add(message["id"])
                else:
                    judge.pushes.append(message)

        reading = asyncio.create_task(answer_pings())
        redis.freeze()
        try:
            assert await judge.ask(3) == 503
            async with asyncio.timeout(2 * TIMEOUT):
                while pings < 2:  # the pong that the first one wants is overdue
                    await asyncio.sleep(PAUSE)
        finally:
            redis.resume()
        number = 3
        async with asyncio.timeout(TIMEOUT):
            while not judge.taken - {2}:
                number += 1
                await judge.ask(number)
            while not judge.taken <= judge.replies:
                await asyncio.sleep(PAUSE)
            seen = pings
        async with asyncio.timeout(2 * TIMEOUT):
            while pings < seen + 2:
                await asyncio.sleep(PAUSE)
            while "push" not in (last := await silent.message()):
                pass
        reading.cancel()
        await asyncio.gather(*answering)

    assert judge.pushes == []
    assert judge.slowest < SDK_TIMEOUT
    assert last["push"]["disconnect"]["code"] == 3012
