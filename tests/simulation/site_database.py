"""The site's database: SQLite runs each statement, this model says when it shows to others.

A transaction is the list of its statements. Nobody else sees them before the commit, which runs
them all at once; the transaction itself sees them, because each of its statements runs after those
before it, and is undone. So each statement sees what is committed at its moment, as with READ
COMMITTED, and IDs become visible in the order of commits, not of their numbers.

    session ── execute, commit ──► round trip ─► lock, effect ─► round trip ─► answer
                    lost: the connection ends, with its transaction and its locks

Two kinds, which differ in what the backend tells Django, and in what waits:

    POSTGRESQL  shards are locked with SKIP LOCKED; transactions that change the same row of the
                site wait for each other; what a relay commits is lost in a crash, unless a commit
                of somebody else has followed
    SQLITE      whoever writes has the whole database, until the end of the transaction
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from tests.simulation.greenlets import current, sleep, suspend, wait
from tests.simulation.world import Process, World

POSTGRESQL, SQLITE = "postgresql", "sqlite"

DELAY = 0.001
"""Seconds from a statement to the database, and back, at most."""
LOCK_TIMEOUT = 5.0
"""Seconds that a statement waits for a lock; the time-out of SQLite, or a found deadlock."""
FLUSH = 0.6
"""Seconds until what was committed without waiting for the disk is there."""

TABLES = (
    'CREATE TABLE realtime_pending ("id" bigint NOT NULL PRIMARY KEY DEFAULT (next_id()),'
    ' "key" char(32) NOT NULL UNIQUE, "shard" smallint NOT NULL, "channel" text NOT NULL,'
    ' "data" text NOT NULL, "extras" text NOT NULL, "due" datetime NULL, "created" datetime NOT'
    ' NULL, "attempts" smallint NOT NULL, "error" text NOT NULL)',
    "CREATE INDEX realtime_pending_due ON realtime_pending (shard, due, id)",
    'CREATE TABLE realtime_pending_relay ("shard" smallint NOT NULL PRIMARY KEY, "owner"'
    ' varchar(32) NOT NULL, "until" datetime NULL, "held" text NOT NULL)',
    "CREATE TABLE site_row (name text NOT NULL PRIMARY KEY, n integer NOT NULL)",
)

Row = tuple[Any, ...]
T = TypeVar("T")


@dataclass(slots=True)
class Statement:
    """One of a transaction. It gets the same IDs whenever it runs."""

    sql: str
    params: Sequence[Any]
    ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Trap:
    """Something that goes wrong at a step of a process that waits for the database."""

    word: str
    """In the statement: "COMMIT", "DELETE", "" for each of them."""
    is_before: bool
    """Whether the statement has no effect."""
    processes: Callable[[Process], bool]
    spring: Callable[[Session], object]


class Session:
    """One connection, as a driver has it. Everything here waits, in a greenlet."""

    def __init__(self, database: SiteDatabase, process: Process) -> None:
        self.database = database
        self.process = process
        self.statements: list[Statement] = []
        self.in_transaction = False
        self.is_lost = False
        self.is_relaxed = False
        """Whether the commit of this transaction does not wait for the disk."""
        self.idle_timeout = 0.0
        self.steps = 0
        process.on_death.append(self.lose)

    def begin(self) -> None:
        """Begin a transaction, with the next statement."""
        self.in_transaction = True

    def execute(self, sql: str, params: Sequence[Any]) -> tuple[list[Row], int]:
        """Run a statement. Return its rows, and how many rows it changed."""
        return self._step(sql, lambda: self.database.execute(self, sql, params))

    def call(self, query: str, arguments: Sequence[Any]) -> list[Row]:
        raise NotImplementedError

    def commit(self) -> None:
        """Commit; where it raises, the transaction may be committed or not."""
        if self.in_transaction:
            self._step("COMMIT", lambda: self.database.commit(self))

    def rollback(self) -> None:
        """Forget the transaction."""
        if self.is_lost:
            raise sqlite3.OperationalError("the connection is closed")
        self._end()

    def savepoint(self, sql: str) -> None:
        """Remember a place in the transaction, or go back to it."""
        if self.is_lost:
            raise sqlite3.OperationalError("the connection was lost")
        statements = self.statements
        if sql.startswith("SAVEPOINT"):
            statements.append(Statement(sql, ()))
        elif sql.startswith("ROLLBACK TO"):
            name = sql.rpartition(" ")[2]
            at = max(n for n, each in enumerate(statements) if each.sql == f"SAVEPOINT {name}")
            del statements[at + 1 :]

    def _step(self, sql: str, effect: Callable[[], T]) -> T:
        database, process = self.database, self.process
        self.steps += 1
        sleep(process, database.delay())
        self._check(sql, is_before=True)
        database.wait_for_lock(self, sql)
        result = effect()
        if self.idle_timeout and self.in_transaction:
            database.world.after(self.idle_timeout, self._check_idle, self.steps)
        self._check(sql, is_before=False)
        sleep(process, database.delay())
        if self.is_lost:
            raise sqlite3.OperationalError("the connection was lost")
        return result

    def _check(self, sql: str, *, is_before: bool) -> None:
        if self.is_lost:
            raise sqlite3.OperationalError("the connection was lost")
        trap = self.database.trap
        if trap is None or trap.word not in sql or trap.is_before is not is_before:
            return
        if not trap.processes(self.process):
            return
        self.database.trap = None
        trap.spring(self)
        if not self.process.alive:
            suspend()  # for ever
        if self.process.frozen:
            sleep(self.process, 0.0)
        if self.is_lost:
            raise sqlite3.OperationalError("the connection was lost")

    def _check_idle(self, steps: int) -> None:
        if self.steps == steps and self.in_transaction:
            self.lose()

    def lose(self) -> None:
        """Lose the connection: the process learns it at its next statement."""
        self.is_lost = True
        self._end()

    def close(self) -> None:
        """Close the connection."""
        if not self.is_lost:
            self.process.on_death.remove(self.lose)
            self.lose()

    def _end(self) -> None:
        self.statements = []
        self.in_transaction = self.is_relaxed = False
        self.idle_timeout = 0.0
        self.database.free(self)


class SiteDatabase:
    """See the module."""

    session_class = Session
    engine_name = "\0"
    """Statements of the engine have it."""

    def __init__(self, world: World, kind: str) -> None:
        self.world = world
        self.kind = kind
        self.trap: Trap | None = None
        self.on_commit: Callable[[list[Row]], object] = lambda rows: None
        """Gets ID and data of the publications that a commit has made."""
        self._away_until = 0.0
        self._slow_until = 0.0
        self._sessions: dict[Session, None] = {}
        self._locks: dict[tuple[str, Any], Session] = {}
        self._waiting: list[Callable[[], None]] = []
        self._chance = Random(world.random.getrandbits(64))
        self._next_id = 0
        self._ids: list[int] = []
        """Those that the statement which runs has had before."""
        self._given: list[int] = []
        self._on_disk: bytes | None = None
        """What a crash leaves, where that is not everything."""
        self._relaxed = 0
        self.sqlite = self._open()
        for table in TABLES:
            self.sqlite.execute(table)

    def _open(self) -> sqlite3.Connection:
        made = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        made.create_function("next_id", 0, self._give_id)
        made.create_function("set_config", 3, lambda name, value, is_local: value)
        return made

    def _give_id(self) -> int:
        if self._ids:
            given = self._ids.pop(0)
        else:
            given = self._next_id = self._next_id + 1
        self._given.append(given)
        return given

    def delay(self) -> float:
        """Return seconds that something takes to the database, or back."""
        seconds = self._chance.random() * DELAY
        return max(seconds, self._slow_until - self.world.now)

    # what goes wrong

    def leave(self, seconds: float) -> None:
        """Crash, and be back after a while."""
        self._away_until = self.world.now + seconds
        for session in list(self._sessions):
            session.lose()
        self._restore()

    def _restore(self) -> None:
        if self._on_disk is not None:
            self._load(self._on_disk)
            self._on_disk = None

    def _load(self, content: bytes) -> None:
        kept = sqlite3.connect(":memory:")
        kept.deserialize(content)
        kept.backup(self.sqlite)  # its own `deserialize` does not last
        kept.close()

    def stall(self, seconds: float) -> None:
        """Answer nobody for a while."""
        self._slow_until = self.world.now + seconds

    def sessions(self) -> list[Session]:
        """Return the open connections."""
        return list(self._sessions)

    # sessions

    @property
    def accepts(self) -> bool:
        """Whether it takes connections."""
        return self._away_until <= self.world.now

    def connect(self) -> Session:
        """Open a connection, in a greenlet."""
        process = current(self.world)
        sleep(process, self.delay())
        if not self.accepts:
            raise sqlite3.OperationalError("connection refused")
        session = self.session_class(self, process)
        self._sessions[session] = None
        return session

    def free(self, session: Session) -> None:
        """Free the locks of a session."""
        if session.is_lost:
            self._sessions.pop(session, None)
        for key in [key for key, owner in self._locks.items() if owner is session]:
            del self._locks[key]
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def wait_for_lock(self, session: Session, sql: str) -> None:
        """Wait until nobody else has what a statement changes."""
        key = self._locked_by(session, sql)
        if key is None:
            return
        deadline = self.world.now + LOCK_TIMEOUT
        while self._locks.get(key, session) is not session:
            left = deadline - self.world.now
            if left <= 0:
                raise sqlite3.OperationalError("database is locked")
            wake = wait(session.process, left)
            self._waiting.append(wake)
            suspend()
            if session.is_lost:
                raise sqlite3.OperationalError("the connection was lost")
        if session.in_transaction:
            self._locks[key] = session

    def _locked_by(self, session: Session, sql: str) -> tuple[str, Any] | None:
        if not is_write(sql):
            return None
        if self.kind == SQLITE:
            return "database", 0
        found = re.match(r"UPDATE site_row .*'(.*)'", sql)
        return ("row", found[1]) if found else None

    @property
    def locked(self) -> list[tuple[str, Any]]:
        """What is locked now."""
        return list(self._locks)

    # statements

    def execute(self, session: Session, sql: str, params: Sequence[Any]) -> tuple[list[Row], int]:
        """Run a statement of a session at this moment."""
        skips = sql.endswith(" FOR UPDATE SKIP LOCKED")
        sql = sql.removesuffix(" FOR UPDATE SKIP LOCKED")
        statement = Statement(sql, params)
        if not session.in_transaction:
            answer = self._run(statement)
            if is_write(sql):
                self._committed([statement], is_relaxed=False)
            return answer
        if not session.statements and not is_write(sql):
            answer = self._run(statement)
        else:
            self.sqlite.execute("SAVEPOINT model")
            try:
                for each in session.statements:
                    self._run(each)
                answer = self._run(statement)
            finally:
                self.sqlite.execute("ROLLBACK TO model")
                self.sqlite.execute("RELEASE model")
        if is_write(sql):
            session.statements.append(statement)
        if skips:
            answer = self._lock_shards(session, answer[0]), 0
        if "idle_in_transaction_session_timeout" in params:
            session.idle_timeout = 5.0 if "5s" in params else 60.0
            session.is_relaxed = "synchronous_commit" in params
        return answer

    def _lock_shards(self, session: Session, rows: list[Row]) -> list[Row]:
        free = [row for row in rows if self._locks.get(("shard", row[0]), session) is session]
        for row in free:
            self._locks["shard", row[0]] = session
        return free

    def _run(self, statement: Statement) -> tuple[list[Row], int]:
        if statement.sql.startswith("SAVEPOINT"):
            return [], 0
        self._ids, self._given = list(statement.ids), []
        cursor = self.sqlite.execute(statement.sql, statement.params)
        rows = cursor.fetchall()
        statement.ids = self._given
        return rows, cursor.rowcount

    def commit(self, session: Session) -> None:
        """Run the statements of a transaction, and end it."""
        statements, is_relaxed = session.statements, session.is_relaxed
        is_writing = any(is_write(each.sql) for each in statements)
        if is_writing:
            if is_relaxed:
                self._relax()
            self.sqlite.execute("BEGIN")
            for each in statements:
                self._run(each)
            self.sqlite.execute("COMMIT")
            self._committed(statements, is_relaxed=is_relaxed)
        session._end()

    def _relax(self) -> None:
        """Keep what a crash leaves of the next commits."""
        if self._on_disk is None:
            self._on_disk = self.sqlite.serialize()
            self._relaxed += 1
            self.world.after(FLUSH, self._flush, self._relaxed)

    def _committed(self, statements: Sequence[Statement], *, is_relaxed: bool) -> list[Row]:
        """Return ID and data of the publications that statements have made."""
        if not is_relaxed:
            self._on_disk = None
        if ids := [each for statement in statements for each in statement.ids]:
            marks = ", ".join("?" * len(ids))
            query = f"SELECT id, data FROM realtime_pending WHERE id IN ({marks}) ORDER BY id"
            rows = self.sqlite.execute(query, ids).fetchall()
            self.on_commit(rows)
            return rows
        return []

    def _flush(self, number: int) -> None:
        if number == self._relaxed:
            self._on_disk = None


def is_write(sql: str) -> bool:
    return sql.startswith(("INSERT", "UPDATE", "DELETE", "SAVEPOINT"))
