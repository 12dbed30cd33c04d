"""The site's database where the engine uses it, too: rows and streams are in one server.

A session runs statements of the engine in the transaction of its rows. Both are committed at once,
in the order of the server's other commits, and a server that ends ends the session. What a
failover loses of rows and of streams is what the same commits wrote.

    session ── rows, statements of the engine ──► commit ─► disk of the server ─► rows and streams
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import django.db
import psycopg

from tests.simulation.greenlets import sleep, suspend, wait
from tests.simulation.postgresql_database import Statement as EngineStatement
from tests.simulation.postgresql_database import Transaction, failure, running
from tests.simulation.postgresql_server import FLUSH, NO_ROOM, PAUSE, PostgreSQL
from tests.simulation.site_database import (
    POSTGRESQL,
    Row,
    Session,
    SiteDatabase,
    Statement,
    is_write,
)
from tests.simulation.world import Process, World

NO_RIGHTS = "42501"


class JoinedSession(Session):
    """A connection for rows, and for statements of the engine."""

    database: JoinedDatabase

    def __init__(self, database: SiteDatabase, process: Process) -> None:
        self.engine: Transaction | None = None
        """What statements of the engine have done in the transaction under way."""
        self.is_committing = False
        self.after_commit: list[Callable[[], object]] = []
        super().__init__(database, process)

    def call(self, query: str, arguments: Sequence[Any]) -> list[Row]:
        """Run a statement of the engine."""
        statement = self.database.server.statement(query.encode())
        return self._step(query, lambda: self.database.call(self, statement, tuple(arguments)))

    def lose(self) -> None:
        self.is_lost = True
        if not self.is_committing:  # the server goes on with that
            self._end()

    def _end(self) -> None:
        if self.engine is not None:
            self.database.server.database.end(self.engine)
        self.engine, self.after_commit = None, []
        super()._end()


class JoinedDatabase(SiteDatabase):
    """See the module."""

    session_class = JoinedSession

    def __init__(self, world: World, server: PostgreSQL, *, loses: bool) -> None:
        """`loses`: whether commits may be taken back."""
        super().__init__(world, POSTGRESQL)
        self.server, self.engine_name = server, server.quoted
        self._loses = loses
        self.refuses = False
        """Whether a role lacks rights: statements of the engine fail in transactions of rows."""
        self.on_lost: Callable[[list[Row]], object] = lambda rows: None
        """Gets ID and data of publications whose commit is taken back."""
        server.on_end = self._end

    def delay(self) -> float:
        return max(super().delay(), self.server.delay())

    @property
    def accepts(self) -> bool:
        server = self.server
        return server.process.alive and not server.process.frozen and not server.is_full

    def _end(self, how: str) -> None:
        for session in list(self._sessions):
            assert isinstance(session, JoinedSession)
            session.is_committing = False
            session.lose()
        if how in ("crashed", "replaced"):
            self._restore()
        self._on_disk = None

    # statements

    def call(
        self, session: JoinedSession, statement: EngineStatement, arguments: tuple[Any, ...]
    ) -> list[Row]:
        """Run a statement of the engine, which may wait for locks."""
        server = self.server
        if self.refuses:
            self._fail(session, failure(NO_RIGHTS))
        transaction = session.engine or Transaction(server.database)
        session.engine = transaction
        steps = running(statement, transaction, arguments)
        try:
            while True:
                if (lock := next(steps)) is not None:
                    wake = wait(session.process, None)
                    server.database.wait(lock, wake)
                    self._wait(session, wake)
                elif server.chance.random() < PAUSE:
                    sleep(session.process, server.chance.random() * FLUSH)
                if session.is_lost:
                    raise sqlite3.OperationalError("the connection was lost")
        except StopIteration as done:
            if not session.in_transaction:
                self._write(session, (), is_relaxed=transaction.is_relaxed)
            rows: list[Row] = done.value
            return rows
        except psycopg.Error as error:
            self._fail(session, error)

    def _fail(self, session: JoinedSession, error: psycopg.Error) -> NoReturn:
        session._end()
        raise django.db.OperationalError(str(error)) from error

    def _wait(self, session: JoinedSession, wake: Callable[[], None]) -> None:
        self._waiting.append(wake)  # the session may be lost meanwhile
        suspend()

    def execute(self, session: Session, sql: str, params: Sequence[Any]) -> tuple[list[Row], int]:
        assert isinstance(session, JoinedSession)
        if not session.in_transaction and is_write(sql):
            return self._write(session, [Statement(sql, params)], is_relaxed=False)
        return super().execute(session, sql, params)

    # commits

    def commit(self, session: Session) -> None:
        assert isinstance(session, JoinedSession)
        is_writing = any(is_write(each.sql) for each in session.statements)
        if is_writing or session.engine is not None:
            statements = session.statements if is_writing else ()
            self._write(session, statements, is_relaxed=session.is_relaxed)
        else:
            session._end()

    def _write(
        self, session: JoinedSession, statements: Sequence[Statement], *, is_relaxed: bool
    ) -> tuple[list[Row], int]:
        """Commit; return the answer to the last statement, when the server is done."""
        server = self.server
        if session.engine is not None and server.refuses(session.engine):
            self._fail(session, failure(NO_ROOM))
        answers: list[tuple[list[Row], int]] = [([], 0)]
        transaction = session.engine or Transaction(server.database)
        transaction.is_relaxed = is_relaxed
        if statements or session.after_commit:
            transaction.also = partial(
                self._apply, statements, session.after_commit, answers, is_relaxed
            )
        session.engine, session.is_committing = None, True
        server.flush(transaction, partial(self._done, session, transaction))
        while session.is_committing:
            self._wait(session, wait(session.process, None))
        if session.is_lost:
            raise sqlite3.OperationalError("the connection was lost")
        return answers[-1]

    def _done(self, session: JoinedSession, transaction: Transaction) -> None:
        self.server.database.commit(transaction)
        self.server.notify(transaction)
        session.is_committing = False
        session._end()

    def _apply(
        self,
        statements: Sequence[Statement],
        callbacks: Sequence[Callable[[], object]],
        answers: list[tuple[list[Row], int]],
        is_relaxed: bool,
    ) -> Callable[[], object]:
        """Change the rows; return what takes that back."""
        before = self.sqlite.serialize() if self._loses else b""
        if is_relaxed:
            self._relax()
        self.sqlite.execute("BEGIN")
        answers += [self._run(each) for each in statements]
        self.sqlite.execute("COMMIT")
        rows = self._committed(statements, is_relaxed=is_relaxed)
        for callback in callbacks:
            callback()

        def undo() -> None:
            self._load(before)
            self.on_lost(rows)

        return undo
