"""A model of PostgreSQL as far as the engine uses it: tables, transactions, locks.

A statement is a generator, in a transaction of its own. It yields where it may have to wait: at a
lock, and before each inner statement of a function, where others may go on. What it writes shows to
others at its commit, all at once; what it reads was committed before its inner statement, or is its
own.

States of a transaction, and the events that lead to them:

    RUNNING    holds the locks of what it has written, until its end
    COMMITTED  its rows are those of the tables, and its notifications are under way
    ABORTED    it had no effect, but for numbers of sequences

Invariant: a row that a transaction has written is written by no other one before its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from inspect import isgenerator
from typing import Any

import psycopg

Row = tuple[Any, ...]
Key = Any
Lock = tuple[Hashable, ...]
Running = Generator[Lock | None, None, Any]
"""A statement that runs: it yields a lock that it waits for, or None where others may go on."""
Statement = Callable[..., Any]


class Statements(dict[str, Statement]):
    """What the engine may send, by its text."""

    def runs(self, query: str) -> Callable[[Statement], Statement]:
        """Let a function be a statement."""

        def put(statement: Statement) -> Statement:
            self[query] = statement
            return statement

        return put


UNLOGGED = {"letter", "presence", "node", "survey", "answer", "owner", "listed", "listing", "swept"}
UNLOGGED |= {"last_sweep", "seen", "debt", "place"}
"""Tables that are empty after a crash."""

REMEMBERED = 20
"""Commits that can be taken back, as those that a replica had not got."""

DEADLOCK, LOCK_TIMEOUT = "40P01", "55P03"


def failure(state: str) -> psycopg.Error:
    """Return the error with an SQLSTATE."""
    return psycopg.errors.lookup(state)(f"{state} of the model")


class Transaction:
    """See the module."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writes: dict[tuple[str, Key], Any] = {}
        self.notifications: dict[str, None] = {}
        self.is_relaxed = False
        """Whether its commit waits for no disk."""
        self.also: Callable[[], Callable[[], object]] | None = None
        """Commits what else is in it; returns what takes that back."""
        self.locks: list[Lock] = []
        self.waits_for: Lock | None = None
        self.lock_until: float | None = None
        """When it gives up a lock that it waits for."""

    @property
    def waits_for_disk(self) -> bool:
        is_kept = any(table not in UNLOGGED for table, _ in self.writes)
        return not self.is_relaxed and (is_kept or self.also is not None)

    # the clock

    def now_ms(self) -> int:
        return round((self.database.clock() + self.database.shift) * 1000)

    def now_us(self) -> int:
        return round(self.database.clock() * 1_000_000)

    @property
    def timeline(self) -> str:
        """What the server adds to epochs."""
        timeline = self.database.timeline
        return "" if timeline == 1 else f"-{timeline:X}"

    # reading

    def get(self, table: str, key: Key) -> Any:
        """Return a row; None if there is none."""
        written = self.writes.get((table, key), self)
        return self.database.tables[table].get(key) if written is self else written

    def scan(self, table: str) -> Iterator[tuple[Key, Any]]:
        """Yield all rows, those that this statement writes meanwhile not included."""
        rows = self.database.tables[table]
        own = {key: row for (name, key), row in self.writes.items() if name == table}
        merged = {**rows, **own} if own else dict(rows)
        return ((key, row) for key, row in merged.items() if row is not None)

    # locks

    def lock(self, *lock: Hashable, seconds: float | None = None) -> Running:
        """Get a lock, which lasts until the end. `seconds`: how long to wait for it."""
        holders = self.database.locks
        if seconds is not None:
            self.lock_until = self.database.clock() + seconds
        while (holder := holders.get(lock)) is not self:
            if holder is None:
                holders[lock] = self
                self.locks.append(lock)
                break
            self.waits_for = lock
            self._find_deadlock(holder)
            yield lock
            if self.lock_until is not None and self.database.clock() >= self.lock_until - 1e-6:
                raise failure(LOCK_TIMEOUT)
        self.waits_for = self.lock_until = None
        return []

    def is_free(self, *lock: Hashable) -> bool:
        """Return whether no other transaction has a lock, as SKIP LOCKED asks."""
        return self.database.locks.get(lock, self) is self

    def _find_deadlock(self, holder: Transaction) -> None:
        waiting: Transaction | None = holder
        while waiting is not None and waiting.waits_for is not None:
            waiting = self.database.locks.get(waiting.waits_for)
            if waiting is self:
                raise failure(DEADLOCK)

    # writing

    def put(self, table: str, key: Key, row: Any) -> Running:
        """Write a row, or delete it with None."""
        yield from self.lock(table, key)
        self.writes[table, key] = row
        return []

    def add(self, table: str, key: Key, row: Any) -> Running:
        """Insert a row unless there is one: ON CONFLICT DO NOTHING."""
        if self.get(table, key) is None:
            yield from self.lock(table, key)
            if self.get(table, key) is None:
                self.writes[table, key] = row
        return []

    def find(self, table: str, key: Key, where: Callable[[Any], bool]) -> Running:
        """Lock a row, as UPDATE and FOR UPDATE do.

        Returns:
            The row as it is now, in a list; nothing if there is none of which `where` is true.
        """
        row = self.get(table, key)
        if row is None or not where(row):
            return []
        yield from self.lock(table, key)
        row = self.get(table, key)
        return [row] if row is not None and where(row) else []

    def number(self, sequence: str) -> int:
        """Return the next number, which others get no more."""
        numbers = self.database.sequences
        numbers[sequence] = number = numbers.get(sequence, 0) + 1
        return number


class Database:
    """See the module. `clock`: returns Unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.shift = 0.0
        """Seconds by which a test has moved the time of everything that expires."""
        names = {"stream", "entry", "partition", "once", "setting", "blocked", "block_list"}
        names |= {"map", "map_entry"}
        self.tables: dict[str, dict[Key, Any]] = {name: {} for name in {*names, *UNLOGGED}}
        self.sequences: dict[str, int] = {}
        self.timeline = 1
        """Another one after each promotion."""
        self.locks: dict[Lock, Transaction] = {}
        self.on_commit: Callable[[Transaction], object] = lambda transaction: None
        self._waiting: dict[Lock, list[Callable[[], object]]] = {}
        self._log: deque[tuple[list[tuple[str, Key, Any]], Callable[[], object]]]
        self._log = deque(maxlen=REMEMBERED)
        """The last commits: the rows that were there before, and what takes the rest back."""

    def begin(
        self, statement: Statement, arguments: tuple[Any, ...]
    ) -> tuple[Transaction, Running]:
        """Begin a statement."""
        transaction = Transaction(self)
        return transaction, running(statement, transaction, arguments)

    def execute(self, statement: Statement, *arguments: Any) -> list[Row]:
        """Run a statement alone, and commit."""
        transaction, running = self.begin(statement, arguments)
        try:
            while True:
                assert next(running) is None, "the statement would wait for ever"
        except StopIteration as done:
            self.commit(transaction)
            rows: list[Row] = done.value
            return rows
        finally:
            self.end(transaction)

    def wait(self, lock: Lock, wake: Callable[[], object]) -> None:
        """Call something as soon as a lock is free."""
        self._waiting.setdefault(lock, []).append(wake)

    def commit(self, transaction: Transaction) -> None:
        """Let others see what a transaction has written."""
        before = []
        for (table, key), row in transaction.writes.items():
            rows = self.tables[table]
            before.append((table, key, rows.get(key)))
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row
        undo: Callable[[], object] = int if transaction.also is None else transaction.also()
        if before or transaction.also is not None:
            self._log.append((before, undo))
        self.on_commit(transaction)
        self.end(transaction)

    def end(self, transaction: Transaction) -> None:
        """Free the locks of a transaction, which is over."""
        for lock in transaction.locks:
            del self.locks[lock]
        for lock in transaction.locks:
            for wake in self._waiting.pop(lock, ()):
                wake()
        transaction.locks = []

    def lose(self, commits: int) -> list[tuple[str, Key]]:
        """Take the last commits back. Return the rows that are gone."""
        gone = []
        for _ in range(min(commits, len(self._log))):
            rows, undo = self._log.pop()
            undo()
            for table, key, before in rows:
                if before is None:
                    self.tables[table].pop(key, None)
                    gone.append((table, key))
                else:
                    self.tables[table][key] = before
        return gone

    def crash(self, *, is_clean: bool) -> None:
        """End all transactions, and empty what is UNLOGGED, as a server that begins again."""
        self.locks.clear()
        self._waiting.clear()
        if not is_clean:
            for table in UNLOGGED:
                self.tables[table].clear()
            for sequence in UNLOGGED & self.sequences.keys():  # as PostgreSQL 15 does, and newer
                del self.sequences[sequence]


def running(statement: Statement, transaction: Transaction, arguments: tuple[Any, ...]) -> Running:
    """Run a statement in a transaction."""
    rows = statement(transaction, *arguments)
    if isgenerator(rows):
        rows = yield from rows
    return rows
