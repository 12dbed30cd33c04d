"""A server of PostgreSQL in the network: backends, commits, notifications, and its ends.

A backend runs one statement after another, each in a transaction of its own:

    arrived ─► runs, waits for locks ─► waits for the disk ─► committed ─► reply
                   └─ an error, a time-out, a cancel: rolled back        └─ notifications

Commits that wait for the disk come one after the other. What wrote in UNLOGGED tables alone, or
nothing, waits for none. A backend whose client is gone runs its statement to its end.

How a server ends, and what it has when it is back at its place:

    stopped     everything that was committed
    crashed     that without UNLOGGED tables; of what waited for the disk, the first ones or none
    replaced    the same, at a replica for which commits wait
    lost        the same, at a replica for which they do not: without the last commits
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, NamedTuple

import msgspec
import psycopg

from realtime.engine.postgresql.rings import Ring
from realtime.engine.postgresql.schema import DEFAULT_SCHEMA, quoted
from tests.simulation import (
    postgresql_cluster,
    postgresql_lists,
    postgresql_maps,
    postgresql_publishing,
    postgresql_streams,
)
from tests.simulation.network import End, Link, Network
from tests.simulation.postgresql_database import (
    REMEMBERED,
    Database,
    Key,
    Row,
    Running,
    Statement,
    Transaction,
)
from tests.simulation.world import Process, World

STATEMENTS: Mapping[str, Statement] = {
    **postgresql_streams.STATEMENTS,
    **postgresql_maps.STATEMENTS,
    **postgresql_publishing.STATEMENTS,
    **postgresql_lists.STATEMENTS,
    **postgresql_cluster.STATEMENTS,
}

PORT = 5432
FLUSH = 0.001
"""Seconds that a commit waits for the disk, on average."""
PAUSE = 0.05
"""One in so many inner statements begins later."""
CANCELED, SHUTDOWN, FULL, NO_ROOM = "57014", "57P01", "53300", "54000"


class Execute(NamedTuple):
    """A request of a client."""

    query: bytes
    arguments: tuple[Any, ...]
    timeout: float
    """Seconds until the server cancels it; 0: never."""


CANCEL = "cancel"
"""A request that comes over another connection in truth."""
READY = "ready"
"""The first message to a client."""


class Rows(NamedTuple):
    """A message to a client."""

    rows: list[Row]


class Failed(NamedTuple):
    """A message to a client, with an SQLSTATE."""

    state: str


class Notified(NamedTuple):
    """A message to a client that listens."""

    payload: str


class Backend:
    """The server's side of a connection."""

    def __init__(self, server: PostgreSQL) -> None:
        self._server = server
        self._process = server.process
        self._end: End | None = None
        self._requests: deque[Execute] = deque()
        self._transaction: Transaction | None = None
        self._running: Running
        self._is_committing = False
        self._is_terminated = False
        self._notified: list[Notified] = []
        """What comes after the statement that runs."""

    # the connection

    @property
    def link(self) -> Link | None:
        """The link to its client, if that is there."""
        return None if self._end is None else self._end.link

    def connection_made(self, transport: End) -> None:
        self._end = transport
        if self._server.is_full:
            self._leave(FULL)
        else:
            self._server.backends[self] = None
            transport.write(READY)

    def data_received(self, data: list[Any]) -> None:
        for request in data:
            if request is CANCEL:
                self.cancel(self._transaction)
            else:
                self._requests.append(request)
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._end = None
        self._server.forget(self)

    def _leave(self, state: str) -> None:
        self._server.forget(self)
        if self._end is not None:
            self._end.write(Failed(state))
            self._end.close()
        self._end = None

    def terminate(self) -> None:
        """End as with pg_terminate_backend."""
        self._is_terminated = True
        if self._is_committing:
            return
        if self._transaction is not None:
            self._server.database.end(self._transaction)
            self._transaction = None
        self._leave(SHUTDOWN)

    def notify(self, notified: Notified) -> None:
        """Bring a notification to the client."""
        if self._transaction is not None:
            self._notified.append(notified)
        elif self._end is not None:
            self._end.write(notified)

    # statements

    def _next(self) -> None:
        if self._transaction is not None or not self._requests or self._end is None:
            return
        server, request = self._server, self._requests.popleft()
        if request.query.startswith(b"LISTEN"):
            server.listening[self] = None
            self._end.write(Rows([]))
            return
        self._transaction, self._running = server.database.begin(
            server.statement(request.query), request.arguments
        )
        if request.timeout:
            server.later(request.timeout, self.cancel, self._transaction)
        if (delay := server.delay()) > 0:
            server.later(delay, self._go_on, self._transaction)
        else:
            self._go_on(self._transaction)

    def _go_on(self, transaction: Transaction) -> None:
        server = self._server
        if transaction is not self._transaction or self._is_committing:
            return
        try:
            while (lock := next(self._running)) is None:
                if server.chance.random() < PAUSE:
                    server.later(server.chance.random() * FLUSH, self._go_on, transaction)
                    return
            again = partial(self._process.call, self._go_on, transaction)
            server.database.wait(lock, again)
            if transaction.lock_until is not None:
                server.later(transaction.lock_until - server.clock(), again)
        except StopIteration as done:
            if server.refuses(transaction):
                self._abort(NO_ROOM)
            else:
                self._is_committing = True
                server.flush(transaction, partial(self._commit, transaction, done.value))
        except psycopg.Error as error:
            self._abort(str(error.sqlstate))

    def cancel(self, transaction: Transaction | None) -> None:
        """Roll a statement back, if it is the one that runs."""
        is_running = transaction is not None and transaction is self._transaction
        if is_running and not self._is_committing:
            self._abort(CANCELED)

    def _abort(self, state: str) -> None:
        assert self._transaction is not None
        self._server.database.end(self._transaction)
        self._reply(Failed(state))

    def _commit(self, transaction: Transaction, rows: list[Row]) -> None:
        server = self._server
        server.database.commit(transaction)
        server.notify(transaction)
        self._is_committing = False
        if self._is_terminated:
            self._leave(SHUTDOWN)
        elif transaction.writes and server.loses_answer:
            server.loses_answer = False
            if self._end is not None:
                self._end.link.cut()
        else:
            self._reply(Rows(rows))

    def _reply(self, message: Rows | Failed) -> None:
        self._transaction = None
        notified, self._notified = self._notified, []
        if self._end is not None:
            for each in notified:
                self._end.write(each)
            self._end.write(message)
        self._next()


class PostgreSQL:
    """See the module."""

    def __init__(
        self,
        world: World,
        network: Network,
        clock: Callable[[], float],
        schema: str = DEFAULT_SCHEMA,
    ) -> None:
        self.world = world
        self.network = network
        self.chance = Random(world.random.getrandbits(64))
        self.skew = 0.0
        """Seconds by which its clock is ahead."""
        self.clock = lambda: clock() + self.skew
        self.database = Database(self.clock)
        self.place = ("postgresql", PORT)
        self.slow_until = 0.0
        """When statements begin again."""
        self.stalled_until = 0.0
        """When the disk writes again."""
        self.is_full = False
        """Whether it takes no more connections."""
        self.has_no_room = 0
        """Transactions with notifications that it refuses, because their queue is full."""
        self.loses_answer = False
        """Whether the next commit is made, and its connection breaks before the reply."""
        self.backends: dict[Backend, None] = {}
        self.listening: dict[Backend, None] = {}
        self.quoted = quoted(schema)
        self.numbers: dict[Key, int] = {}
        """The numbers of publications that are kept, by the keys of their entries."""
        self.on_publish: Callable[[str, int], object] = lambda channel, number: None
        """Gets channel and number of each publication that shows to others."""
        self.on_end: Callable[[str], object] = lambda how: None
        """Called with how the server ends."""
        self.database.on_commit = self._committed
        self._statements: dict[bytes, Statement] = {}
        self._flushed_at = 0.0
        self._committing: deque[tuple[Transaction, Callable[[], object]]] = deque()
        self.process: Process
        self.listen()

    # life

    def listen(self) -> None:
        """Begin a process that listens."""
        self.process = Process(self.world, "postgresql")
        self.network.add(self.process)
        self.network.listen(self.process, self.place, lambda: Backend(self), is_bytes=False)

    def restart(self, how: str, seconds: float) -> list[tuple[str, Key]]:
        """End, and be back after a while.

        Args:
            how: one of those in the module.

        Returns:
            The rows that are lost, of those that were committed.
        """
        self.process.kill()
        written = len(self._committing)
        if how != "stopped":
            written = self.chance.randint(0, written)
        for transaction, _ in [*self._committing][:written]:
            self.database.commit(transaction)
        lost = self.database.lose(self.chance.randint(1, REMEMBERED)) if how == "lost" else []
        self.on_end(how)
        self.database.crash(is_clean=how == "stopped")
        self.database.timeline += how in ("replaced", "lost")
        self._committing.clear()
        self.backends.clear()
        self.listening.clear()
        self._flushed_at = 0.0
        self.world.after(seconds, self.listen)
        return lost

    def forget(self, backend: Backend) -> None:
        """Forget a connection that has ended."""
        self.backends.pop(backend, None)
        self.listening.pop(backend, None)

    # what backends ask for

    def statement(self, query: bytes) -> Statement:
        """Return what a query does."""
        if (found := self._statements.get(query)) is None:
            text = query.decode().replace(self.quoted, "{schema}")
            found = self._statements[query] = STATEMENTS[text]
        return found

    def later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Call something in a while, if the server is there."""
        self.process.loop.call_later(seconds, callback, *args)

    def delay(self) -> float:
        """Return seconds until a statement begins."""
        return self.slow_until - self.world.now

    def flush(self, transaction: Transaction, committed: Callable[[], object]) -> None:
        """Call something when a transaction is on disk, as far as it has to be there."""
        if not transaction.waits_for_disk:
            committed()
            return
        begin = max(self.world.now, self._flushed_at, self.stalled_until)
        self._flushed_at = begin + self.chance.random() * 2 * FLUSH
        self._committing.append((transaction, committed))
        self.later(self._flushed_at - self.world.now, self._flushed)

    def _committed(self, transaction: Transaction) -> None:
        writes = transaction.writes.items()
        channels = {row.id: key for (table, key), row in writes if table == "stream" and row}
        sent = [payload.partition(" ")[2].encode() for payload in transaction.notifications]
        for (table, key), row in writes:
            if table == "entry" and row is not None and key[0] in channels:
                number = self._publish(channels[key[0]].decode(), row[1])
                if number is not None:
                    self.numbers[key] = number
            elif table == "letter" and row is not None:
                sent.append(row[1])
        for payload in sent:
            with suppress(msgspec.ValidationError):  # a letter that is no ring
                for message in msgspec.json.decode(payload, type=Ring).messages:
                    if not message.offset:
                        self._publish(message.channel, bytes(message.record))

    def _publish(self, channel: str, content: bytes) -> int | None:
        message = msgspec.json.decode(content) or {}  # null: a letter has it
        record = message.get("record") or ("",)
        if not str(record[0]).isdigit():
            return None
        self.on_publish(channel, number := int(record[0]))
        return number

    def refuses(self, transaction: Transaction) -> bool:
        """Return whether there is no room for the notifications of a transaction."""
        if not transaction.notifications or not self.has_no_room:
            return False
        self.has_no_room -= 1
        return True

    def _flushed(self) -> None:
        self._committing.popleft()[1]()

    def notify(self, transaction: Transaction) -> None:
        """Bring the notifications of a transaction to all that listen."""
        for payload in transaction.notifications:
            for backend in self.listening:
                backend.notify(Notified(payload))
