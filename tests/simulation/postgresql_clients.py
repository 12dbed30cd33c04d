"""Connections to the model of PostgreSQL, as psycopg has them, for event loops and for threads.

    LoopDatabase, ListeningEars ─► LoopConnection.connect ┐
    BlockingDatabase ─► BlockingConnection.connect ───────┴─► Connection ══ network ══► Backend

They take the place of psycopg alone: pools, limits of time and errors are the product's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import psycopg
from psycopg.pq import TransactionStatus

from realtime.engine.postgresql import database
from realtime.serving import run_by_hand
from tests.simulation.greenlets import suspend, wait
from tests.simulation.network import End, Network
from tests.simulation.postgresql_database import Row, failure
from tests.simulation.postgresql_server import CANCEL, READY, Execute, Failed, Notified, Rows
from tests.simulation.world import Process

LATE = 0.1
"""Seconds from one look of psycopg at the time to the next."""
MOMENT = 1e-6
"""Seconds by which a timer may be early."""
CANCEL_TIMEOUT = 5.0
"""Seconds that psycopg waits for a statement whose caller has been cancelled."""
ENDED = "57P"
"""Errors after which the connection ends."""


class Cursor:
    """The rows of a statement, for threads."""

    description = True

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def fetchall(self) -> list[Row]:
        return self.rows


class LoopCursor(Cursor):
    """The same for event loops."""

    async def fetchall(self) -> list[Row]:  # type: ignore[override]
        return self.rows


class Connection:
    """A connection of an event loop, and a receiver of the network."""

    def __init__(self, process: Process, options: dict[str, Any]) -> None:
        self.limit = 5.0
        self.closed = False
        self.pgconn = self.info = self
        self.transaction_status = TransactionStatus.IDLE
        self._process = process
        limit = str(options.get("options", "")).rpartition("statement_timeout=")[2]
        self._timeout = int(limit or 0) / 1000
        self._place = (options["host"], int(options["port"]))
        self._end: End | None = None
        self._replies: deque[Rows | Failed] = deque()
        self._notifications: deque[Notified] = deque()
        self._is_ready = self._is_lost = False
        self._wake: Callable[[], object] = _nothing

    # from the network

    def connection_made(self, transport: End) -> None:
        self._end = transport

    def data_received(self, data: list[Any]) -> None:
        for message in data:
            if message is READY:
                self._is_ready = True
            elif isinstance(message, Notified):
                self._notifications.append(message)
            else:
                self._replies.append(message)
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._wake()

    # waiting

    async def _wait(self, seconds: float) -> None:
        """Return when something has come, or when so many seconds are over."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self._wake, timer = wake, loop.call_later(seconds, wake)
        try:
            await woken
        finally:
            timer.cancel()
            self._wake = _nothing

    async def _reply(self, seconds: float) -> Rows | Failed:
        until = self._now() + seconds
        while not self._replies:
            if self._is_lost:
                self.transaction_status = TransactionStatus.UNKNOWN
                raise psycopg.OperationalError("the connection is lost")
            if (left := until - self._now()) <= MOMENT:
                raise database._Late
            await self._wait(left)
        return self._replies.popleft()

    def _now(self) -> float:
        return self._process.loop.time()

    # as psycopg

    async def open(self, network: Network) -> None:
        """Connect; raise an error of psycopg, or of the network."""
        try:
            await network.open(self._process, lambda: self, self._place)
            while not self._is_ready:
                if self._replies or self._is_lost:
                    raise psycopg.OperationalError("the server refuses connections")
                await Connection._wait(self, CANCEL_TIMEOUT)  # threads connect on their loop, too
        finally:
            if not self._is_ready:
                await Connection.close(self)

    def parameter_status(self, name: str) -> str:
        return "UTF8"

    @property
    def is_stale(self) -> bool:
        """Whether something has come that nothing has asked for."""
        return self.closed or self._is_lost or bool(self._replies)

    async def execute(self, query: bytes, arguments: tuple[Any, ...] = (), **_: Any) -> Any:
        return LoopCursor(await self._execute(query, arguments))

    async def _execute(self, query: bytes, arguments: tuple[Any, ...]) -> list[Row]:
        if self.closed or self._end is None:
            raise psycopg.OperationalError("the connection is closed")
        self._end.write(Execute(query, arguments, self._timeout))
        self.transaction_status = TransactionStatus.ACTIVE
        try:
            reply = await self._reply(self.limit + self._end.link.world.random.random() * LATE)
        except asyncio.CancelledError:
            self._end.write(CANCEL)
            with contextlib.suppress(psycopg.Error):
                await self._reply(CANCEL_TIMEOUT)
            raise
        if isinstance(reply, Rows):
            self.transaction_status = TransactionStatus.IDLE
            return reply.rows
        ended = reply.state.startswith(ENDED)
        self.transaction_status = TransactionStatus.UNKNOWN if ended else TransactionStatus.IDLE
        raise failure(reply.state)

    async def notifies(
        self, *, timeout: float, stop_after: int | None = None
    ) -> AsyncIterator[Notified]:
        until, count = self._now() + timeout, 0
        while True:
            while self._notifications:
                yield self._notifications.popleft()
                count += 1
            if stop_after is not None and count >= stop_after:
                return
            if self._is_lost:
                raise psycopg.OperationalError("the connection is lost")
            if (left := until - self._now()) <= MOMENT:
                return
            await self._wait(left)

    async def close(self) -> None:
        self.closed = True
        if self._end is not None:
            self._end.close()


class BlockingConnection(Connection):
    """A connection of threads, which are greenlets."""

    async def _wait(self, seconds: float) -> None:
        self._wake = wait(self._process, seconds)
        suspend()
        self._wake = _nothing

    def begin(self, network: Network, seconds: float) -> None:
        """Connect, as `open` does."""
        opened: list[BaseException | None] = []

        async def open_() -> None:
            try:
                await Connection.open(self, network)
            except (psycopg.Error, OSError) as error:
                opened.append(error)
            else:
                opened.append(None)
            over()

        over = wait(self._process, seconds)
        task = self._process.spawn(open_())
        suspend()
        if not opened:
            task.cancel()
            raise psycopg.errors.ConnectionTimeout("connection timeout expired")
        if opened[0] is not None:
            raise psycopg.OperationalError(str(opened[0]))

    def execute(self, query: bytes, arguments: tuple[Any, ...] = (), **_: Any) -> Cursor:  # type: ignore[override]
        return Cursor(run_by_hand(self._execute(query, arguments)))

    def close(self) -> None:  # type: ignore[override]
        run_by_hand(super().close())


class Semaphore:
    """Takes the place of `threading.Semaphore`: a greenlet waits, and the world goes on."""

    def __init__(self, process_of: Callable[[], Process], value: int) -> None:
        self._process_of = process_of
        self._left = value
        self._waiting: list[Callable[[], None]] = []

    def acquire(self, timeout: float) -> bool:
        process = self._process_of()
        until = process.loop.time() + timeout
        while not self._left:
            if (left := until - process.loop.time()) <= MOMENT:
                return False
            self._waiting.append(wait(process, left))
            suspend()
        self._left -= 1
        return True

    def release(self) -> None:
        self._left += 1
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()


@contextlib.contextmanager
def connecting(network: Network, process_of: Callable[[], Process]) -> Iterator[None]:
    """Let psycopg connect to a network within this block. `process_of`: returns who connects."""

    async def connect(**options: Any) -> Connection:
        connection = Connection(process_of(), options)
        await connection.open(network)
        return connection

    def connect_blocking(**options: Any) -> BlockingConnection:
        connection = BlockingConnection(process_of(), options)
        connection.begin(network, options["connect_timeout"])
        return connection

    threads = SimpleNamespace(Semaphore=lambda value: Semaphore(process_of, value))
    with (
        mock.patch.object(database.LoopConnection, "connect", connect),
        mock.patch.object(database.BlockingConnection, "connect", connect_blocking),
        mock.patch.object(database, "threading", threads),
        mock.patch.object(database, "_is_stale", lambda connection: connection.is_stale),
    ):
        yield


def _nothing() -> None:
    pass
