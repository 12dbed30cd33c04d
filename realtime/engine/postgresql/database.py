"""Statements in PostgreSQL, over a few connections: each is a transaction of its own.

`LoopDatabase` belongs to an event loop, `BlockingDatabase` to any threads without one. Operations
are written once, as coroutines over `Database`; with the blocking one they never suspend.

A connection is kept only after the last reply was read, and closed otherwise. Where one breaks, the
idle ones are closed, too: they lead to the same server.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import psycopg
from psycopg import errors

from realtime.engine.postgresql.schema import DEFAULT_SCHEMA, HINT, NEEDS_UTF8, create, quoted
from realtime.errors import EngineUnavailable, NoReply

CONNECTIONS = 4
"""Connections of an event loop for statements."""
MAX_BLOCKING_CONNECTIONS = 50
"""Threads that can use PostgreSQL at a time; further ones wait for a connection."""

HINT_OF_POOLER = "Behind a pooler, set database_notify_url: see docs/postgresql.md"

Row = tuple[Any, ...]
T = TypeVar("T")

_MISSING = (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName)
_ENDED = ("57P", "08")
"""Classes of errors with which the server ends a connection."""


class Address(NamedTuple):
    """Where PostgreSQL is, and how long it may take."""

    parameters: Mapping[str, Any]
    """Of a connection, as libpq names them."""
    schema: str = DEFAULT_SCHEMA
    connect_timeout: float = 1.0
    """Seconds to get a connection, and seconds to open it."""
    timeout: float = 5.0
    """Seconds that a statement may take."""
    pooled: bool = False
    """Behind a pooler, with which sessions have no state."""

    @property
    def label(self) -> str:
        """The server and the database, without credentials."""
        made = psycopg.conninfo.conninfo_to_dict(**self.parameters)
        name = made.get("dbname") or made.get("service") or ""
        return f"{made.get('host') or 'localhost'}:{made.get('port') or 5432}/{name}"

    def options(self) -> dict[str, Any]:
        """Return the arguments with which psycopg opens a connection."""
        options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(**self.parameters)
        options |= {"autocommit": True, "client_encoding": "utf8"}
        # a replica would be used for good, although it refuses writes
        options.setdefault("target_session_attrs", "read-write")
        options["connect_timeout"] = max(2, round(self.connect_timeout))  # libpq has no less
        if self.pooled:
            return options | {"prepare_threshold": None}
        # a statement that waited for another goes on with what that one has written, and one whose
        # caller has gone must not keep its locks
        ours = r"-c default_transaction_isolation=read\ committed -c statement_timeout="
        given = options.get("options") or ""
        options["options"] = f"{given} {ours}{int(self.timeout * 1000)}".strip()
        return options

    def text(self, query: str) -> bytes:
        """Return a query with the schema in it."""
        return query.replace("{schema}", quoted(self.schema)).encode()

    def unavailable(self, error: BaseException) -> EngineUnavailable:
        """Return the error for a statement that was not run."""
        hint = f" {HINT}." if isinstance(error, _MISSING) else ""
        if "unsupported startup parameter" in str(error):  # so PgBouncer says
            hint = f" {HINT_OF_POOLER}."
        return EngineUnavailable(f"PostgreSQL at {self.label}: {_reason(error)}.{hint}")

    def refuse(self, connection: psycopg.BaseConnection[Row]) -> None:
        """Close a connection to a database that refuses some texts, which is any but UTF8.

        Raises:
            EngineUnavailable: the connection is closed.
        """
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, "UTF8"):  # None: a pooler does not know it
            connection.pgconn.finish()
            raise self.unavailable(ValueError(NEEDS_UTF8.format(encoding)))

    def failed(self, error: BaseException) -> EngineUnavailable:
        """Return the error for a statement that was sent."""
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        if state is not None and not state.startswith(_ENDED):
            return Refused(str(self.unavailable(error)), state)
        return NoReply(f"PostgreSQL at {self.label}: {_reason(error)}.")


class Refused(EngineUnavailable):
    """PostgreSQL refused a statement, which had no effect. `state`: the SQLSTATE."""

    def __init__(self, text: str, state: str) -> None:
        super().__init__(text)
        self.state = state


class Database(Protocol):
    """Runs statements. `{schema}` in a query stands for the schema of the engine."""

    address: Address

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        """Run a statement, committed when this returns, and return its rows.

        Raises:
            EngineUnavailable: PostgreSQL is away or refused; the statement had no effect.
            NoReply: none came in time; the statement may have taken effect.
        """


class _Late(psycopg.OperationalError):
    """The time limit of a wait has passed. No OSError: psycopg says of those something else."""


class LoopConnection(psycopg.AsyncConnection[Row]):
    """A connection on which a wait for the server ends in time."""

    limit = 5.0

    async def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return await super().wait(_limited(gen, self.limit), *args, **kwargs)


class BlockingConnection(psycopg.Connection[Row]):
    """The same for a thread."""

    limit = 5.0

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(_limited(gen, self.limit), *args, **kwargs)


class LoopDatabase:
    """See `Database`. All methods belong to one event loop."""

    def __init__(self, address: Address, connections: int = CONNECTIONS) -> None:
        self.address = address
        self._idle: list[LoopConnection] = []
        self._places = asyncio.Semaphore(connections)
        self._closed = False

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        try:
            async with asyncio.timeout(self.address.connect_timeout + self.address.timeout):
                await self._places.acquire()
        except TimeoutError as error:
            raise self.address.unavailable(error) from None
        try:
            return await self._fetch(query, arguments)
        finally:
            self._places.release()

    async def _fetch(self, query: str, arguments: tuple[Any, ...]) -> list[Row]:
        connection = await self._connection()
        settled = False
        try:
            cursor = await connection.execute(self.address.text(query), arguments, binary=True)
            rows = await cursor.fetchall() if cursor.description else []
            settled = True
        except (psycopg.Error, OSError) as error:
            settled = _is_settled(connection)
            if not settled:
                await self._close_idle()
            raise self.address.failed(error) from None
        finally:
            if settled and not self._closed:
                self._idle.append(connection)
            else:
                await connection.close()
        return rows

    async def _connection(self) -> LoopConnection:
        while self._idle:
            connection = self._idle.pop()
            if not _is_stale(connection):
                return connection
            await connection.close()
        return await open_connection(self.address)

    async def close(self) -> None:
        """Close the connections; those in use when their statements have ended."""
        self._closed = True
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


async def open_connection(address: Address) -> LoopConnection:
    """Open a connection, on the running loop.

    Raises:
        EngineUnavailable: PostgreSQL is away, or the database is not UTF8.
    """
    options = address.options()
    hosts = (options.get("host") or "").count(",") + 1
    try:
        async with asyncio.timeout(address.connect_timeout * hosts):
            connection = await LoopConnection.connect(**options)
    except (psycopg.Error, OSError) as error:
        raise address.unavailable(error) from None
    address.refuse(connection)
    connection.limit = address.timeout
    return connection


class BlockingDatabase:
    """See `Database`. No coroutine suspends; any thread may use it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._idle: list[BlockingConnection] = []
        self._places = threading.Semaphore(MAX_BLOCKING_CONNECTIONS)

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        if self._pid != os.getpid():
            self._inherited = self._idle  # closing them would end the connections of the parent
            self._begin()
        idle, places = self._idle, self._places
        if not places.acquire(timeout=self.address.connect_timeout):
            raise self.address.unavailable(TimeoutError())
        connection: BlockingConnection | None = None
        settled = False
        try:
            connection = self._connection(idle)
            cursor = connection.execute(self.address.text(query), arguments, binary=True)
            rows = cursor.fetchall() if cursor.description else []
            settled = True
        except (psycopg.Error, OSError) as error:
            if connection is None:
                raise self.address.unavailable(error) from None
            settled = _is_settled(connection)
            raise self.address.failed(error) from None
        finally:
            if connection is not None and settled:
                idle.append(connection)
            elif connection is not None:
                connection.close()
                _close_all(idle)
            places.release()
        return rows

    def create_tables(self) -> None:
        """Create the tables and functions, or those of this version in place of others.

        Raises:
            EngineUnavailable: PostgreSQL is away or refuses.
        """
        options = self.address._replace(pooled=True).options()  # no time limit
        try:
            with psycopg.connect(**options) as connection:
                create(connection, self.address.schema)
        except psycopg.Error as error:
            raise self.address.unavailable(error) from None

    def _connection(self, idle: list[BlockingConnection]) -> BlockingConnection:
        with suppress(IndexError):  # another thread may take the last one
            while True:
                connection = idle.pop()
                if not _is_stale(connection):
                    return connection
                connection.close()
        connection = BlockingConnection.connect(**self.address.options())
        self.address.refuse(connection)
        connection.limit = self.address.timeout
        return connection

    def close(self) -> None:
        """Close the connections that no thread uses; they are opened again when needed."""
        _close_all(self._idle)


def _close_all(idle: list[BlockingConnection]) -> None:
    with suppress(IndexError):
        while True:
            idle.pop().close()


def _limited(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """Return what waits for the server as `gen` does, until a time limit.

    psycopg looks in ten times a second, with a false value.
    """
    deadline = time.monotonic() + seconds
    try:
        wants = next(gen)
        while True:
            ready = yield wants
            if not ready and time.monotonic() >= deadline:
                raise _Late
            wants = gen.send(ready)
    except StopIteration as stop:
        value: T = stop.value
        return value


def _is_settled(connection: psycopg.BaseConnection[Row]) -> bool:
    """Return whether a connection owes no reply and can be used again."""
    return connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _is_stale(connection: psycopg.BaseConnection[Row]) -> bool:
    """Return whether a connection that owes nothing got something: that it ends, in most cases."""
    try:
        poll = select.poll()
        poll.register(connection.pgconn.socket, select.POLLIN)
        return bool(poll.poll(0))
    except psycopg.Error:  # it is closed
        return True


def _reason(error: BaseException) -> str:
    if isinstance(error, (TimeoutError, _Late)):
        return "no reply in time"
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return f"{error.diag.message_primary} ({error.sqlstate})"
    return str(error).partition("\n")[0] or type(error).__name__
