"""The model of Redis behind a real socket, in real time: the contract suite of engines runs on it.

A thread serves one model.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import redis

from tests.ports import free_port
from tests.redis_server import TIMEOUT, RedisServer
from tests.simulation import redis_server
from tests.simulation.network import Network
from tests.simulation.redis_values import RedisError, UnknownCommand, encode
from tests.simulation.world import Process, World


class ServedRedis(RedisServer):
    """Takes the place of a real Redis in a test."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, port=free_port())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=2, socket_timeout=TIMEOUT)

    def start(self) -> RedisServer:
        self._thread.start()
        self._run(self._serve())
        return self

    def kill(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT)

    async def _serve(self) -> None:
        model = _Model(self._loop)
        self._server = await self._loop.create_server(
            lambda: _Connection(model), "127.0.0.1", self.port
        )

    async def _close(self) -> None:
        self._server.close()
        await self._server.wait_closed()


class _RealTime:
    """What a server asks of its world."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.random = random.Random()
        self.unix_time = time.time
        self._loop = loop

    @property
    def now(self) -> float:
        return self._loop.time()

    def at(self, when: float, callback: Callable[..., object], *args: Any) -> None:
        self._loop.call_at(when, callback, *args)


class _Model(redis_server.RedisServer):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call = loop.call_soon
        super().__init__(cast(World, _RealTime(loop)), cast(Network, None), "redis")

    def listen(self) -> None:
        process = SimpleNamespace(call=self._call, alive=True, frozen=False)
        self.process = cast(Process, process)

    def answer(self, connection: redis_server.Connection, command: Any) -> None:
        try:
            super().answer(connection, command)
        except UnknownCommand as error:
            connection.write(encode(RedisError(f"ERR unknown command {error}")))


class _Connection(redis_server.Connection, asyncio.Protocol):
    """One connection; a transport of asyncio has what it asks of an `End`."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
