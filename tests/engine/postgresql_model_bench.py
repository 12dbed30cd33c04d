"""The PostgreSQL engine over the model of the simulation, in real time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from realtime.engine.lists import Kind
from realtime.engine.nodes import NodeInfo
from realtime.engine.postgresql.database import Address
from realtime.engine.postgresql.engine import Addresses, PostgreSQLEngine
from realtime.engine.postgresql.streams import DEFAULT_KEEPING, Keeping
from tests.engine.bench import NODE, NODE_LIFETIME, Bench
from tests.simulation import postgresql_server
from tests.simulation.network import Network
from tests.simulation.postgresql_clients import connecting
from tests.simulation.world import Process, World

POSTGRESQL_MODEL = "postgresql-model"


class RealProcess:
    """What they ask of a process: this one is the server, and has the engines."""

    alive = True
    frozen = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.call = loop.call_soon


class RealTime:
    """What a network and a server ask of their world, on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.random = random.Random()
        self.process: Any = RealProcess(loop)
        self._count = 0

    @property
    def now(self) -> float:
        return time.monotonic()

    def at(self, when: float, callback: Any, *args: Any) -> None:
        self._count += 1  # asyncio has no order for two callbacks of one moment, but links have
        self.process.loop.call_at(when + self._count * 1e-9, callback, *args)

    def after(self, seconds: float, callback: Any, *args: Any) -> None:
        self.at(self.now + seconds, callback, *args)


class Model(postgresql_server.PostgreSQL):
    """A server of the model, which engines of one event loop reach."""

    def __init__(self) -> None:
        self.real = RealTime(asyncio.get_running_loop())
        network = Network(cast(World, self.real))
        super().__init__(cast(World, self.real), network, time.time)

    def listen(self) -> None:
        self.process = cast(Process, self.real.process)
        self.network.listen(
            self.process, self.place, lambda: postgresql_server.Backend(self), is_bytes=False
        )


class ModelBench(Bench):
    """An engine over the model, and what it keeps there."""

    engine: PostgreSQLEngine

    def __init__(self, server: Model, keeping: Keeping) -> None:
        self.server = server
        host, port = server.place
        address = Address({"host": host, "port": port}, connect_timeout=2.0)
        super().__init__(PostgreSQLEngine(Addresses(address, address), keeping), self._elapse)

    async def _elapse(self, seconds: float) -> None:
        self.server.database.shift += int(seconds * 1000) / 1000

    async def idle(self) -> None:
        await self.engine.lists.idle()

    def overdue_at(self, node: str) -> int:
        return int(self.server.database.tables["listing"][node])

    def write_name(self, kind: Kind, node: str, name: bytes) -> None:
        self.server.database.tables["listed"][kind.value, name, node] = True

    def lose_list(self, kind: Kind, node: str) -> None:
        listed = self.server.database.tables["listed"]
        for key in [key for key in listed if (key[0], key[2]) == (kind.value, node)]:
            del listed[key]


_models: dict[tuple[int, str], Model] = {}


@asynccontextmanager
async def model_bench(
    prefix: str = "", node: NodeInfo = NODE, keeping: Keeping = DEFAULT_KEEPING
) -> AsyncIterator[ModelBench]:
    """Start an engine, and announce its node. Engines with the same prefix share a server."""
    key = id(asyncio.get_running_loop()), prefix
    server = (_models.get(key) if prefix else None) or Model()
    _models[key] = server
    bench = ModelBench(server, keeping)
    bench.receiver.uid = node.uid
    with connecting(server.network, lambda: server.process):
        try:
            await bench.engine.start(bench.receiver, bench.receiver.uid)
            await bench.cluster.announce(node, NODE_LIFETIME)
            yield bench
        finally:
            await bench.engine.stop()
            _models.pop(key, None)
