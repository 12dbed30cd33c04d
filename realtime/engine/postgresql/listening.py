"""Listening: rings arrive at a node, by LISTEN on a connection of its own or by polling.

States
    connected     rings arrive; each second the node looks at the tops of its channels
    interrupted   the connection is lost, or a look failed: rings are missed. It is tried again
    closed        nothing arrives any more

Events: `lost` connected → interrupted, `restored` interrupted → connected, `close` → closed.
Invariant: between `lost` and `restored` follows no second `lost`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg

from realtime.engine.postgresql.database import (
    HINT_OF_POOLER,
    Database,
    LoopConnection,
    Row,
    open_connection,
)
from realtime.engine.postgresql.rings import send_trial
from realtime.engine.postgresql.schema import quoted
from realtime.errors import EngineUnavailable

LOOK_INTERVAL = 1.0
"""Seconds after which a ring that was lost is made up for."""
TRIAL_TIMEOUT = 3.0
"""Seconds that a node waits for the ring with which it finds out whether rings arrive."""
RETRY_DELAY = 0.2
RETRY_DELAY_MAX = 2.0

_LAST = "SELECT coalesce(max(id), 0) FROM {schema}.letter"
_NEWEST = "SELECT last_value FROM {schema}.letter_id_seq"
"""The last number of a letter; a crash of PostgreSQL 15 or newer begins anew."""
_POLL = (
    "SELECT id, convert_to(at_us || ' ', 'UTF8') || ring FROM {schema}.letter"
    " WHERE id > %s ORDER BY id"
)

OnRing = Callable[[bytes], Awaitable[None]]
Look = Callable[[Database], Awaitable[None]]


class Ears:
    """What both ways of listening have in common. All methods belong to one event loop."""

    def __init__(
        self,
        database: Database,
        on_ring: OnRing,
        look: Look,
        on_change: tuple[Callable[[EngineUnavailable], None], Callable[[], None]],
    ) -> None:
        """
        Args:
            database: where rings are sent, and arrive.
            on_ring: takes the payload of each.
            look: looks at the tops, over a database that it is given.
            on_change: called when rings are missed from now on, and when they arrive again.
        """
        self.address = database.address
        self.database = database
        self.on_ring = on_ring
        self.look = look
        self._on_lost, self._on_restored = on_change
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            EngineUnavailable: PostgreSQL is away, or a pooler keeps rings back.
        """
        await self._connect()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            lost = EngineUnavailable()
            try:
                await self._listen()
            except EngineUnavailable as error:
                lost = error
            except (psycopg.Error, OSError) as error:
                lost = self.address.failed(error)
            await self._disconnect()
            self._on_lost(lost)
            await self._connect_again()
            self._on_restored()

    async def _connect_again(self) -> None:
        delay = RETRY_DELAY
        while True:
            await asyncio.sleep(delay)
            delay = min(2 * delay, RETRY_DELAY_MAX)
            with suppress(EngineUnavailable):
                return await self._connect()

    async def _connect(self) -> None:
        raise NotImplementedError

    async def _listen(self) -> None:
        """Take rings until listening fails."""
        raise NotImplementedError

    async def _disconnect(self) -> None:
        pass


class ListeningEars(Ears):
    """Listens on a connection of its own."""

    _connection: LoopConnection | None = None
    _heard: list[str]
    """Rings that arrived with the trial."""

    async def _connect(self) -> None:
        connection = await open_connection(self.address)
        try:
            await connection.execute(f"LISTEN {quoted(self.address.schema)}".encode())
            await self._try_out(connection)
        except BaseException as error:  # the task may be cancelled
            await connection.close()
            if isinstance(error, psycopg.Error | OSError):
                raise self.address.unavailable(error) from None
            raise
        self._connection = connection

    async def _try_out(self, connection: LoopConnection) -> None:
        """Wait for a ring of our own, which a pooler would drop."""
        trial, self._heard = await send_trial(self.database), []
        clock = asyncio.get_running_loop().time
        until = clock() + TRIAL_TIMEOUT
        while not any(ring.endswith(trial) for ring in self._heard):
            if (left := until - clock()) <= 0:
                raise EngineUnavailable(f"{self.address.label}: no ring arrives. {HINT_OF_POOLER}.")
            async for ring in connection.notifies(timeout=left, stop_after=1):
                self._heard.append(ring.payload)

    async def _listen(self) -> None:
        connection = self._connection
        assert connection is not None
        for ring in self._heard:
            await self.on_ring(ring.encode())
        while True:
            async for notification in connection.notifies(timeout=LOOK_INTERVAL):
                await self.on_ring(notification.payload.encode())
            await self.look(self)

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        """Look over the connection itself, as a `Database`: an error shows that it is lost."""
        assert self._connection is not None
        cursor = await self._connection.execute(self.address.text(query), arguments, binary=True)
        return await cursor.fetchall()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


class PollingEars(Ears):
    """Reads letters, where sessions have no state."""

    def __init__(self, database: Database, interval: float, *arguments: Any) -> None:
        super().__init__(database, *arguments)
        self._interval = interval
        self._last = 0

    async def _connect(self) -> None:
        ((self._last,),) = await self.database.fetch(_LAST)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        look_at = loop.time() + LOOK_INTERVAL
        while True:
            await asyncio.sleep(self._interval)
            for number, ring in await self.database.fetch(_POLL, self._last):
                self._last = number
                await self.on_ring(ring)
            if loop.time() >= look_at:
                look_at = loop.time() + LOOK_INTERVAL
                ((newest,),) = await self.database.fetch(_NEWEST)
                if newest < self._last:
                    raise EngineUnavailable("PostgreSQL crashed, and letters are lost")
                await self.look(self.database)
