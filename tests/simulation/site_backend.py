"""Django's backend for the site's database: what SQLite's has, over sessions of the model."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3 import base, features
from greenlet import getcurrent

from tests.simulation.site_database import POSTGRESQL, Row, Session, SiteDatabase


class Cursor:
    """A cursor of DB-API, as far as Django's ORM uses one."""

    arraysize = 1
    lastrowid = None
    description: bool | None = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows: list[Row] = []
        self.rowcount = -1

    def execute(self, query: str, params: Sequence[Any] | None = None) -> Cursor:
        if query.startswith(("SAVEPOINT", "ROLLBACK TO", "RELEASE")):
            self._session.savepoint(query)
            return self
        if self._session.database.engine_name in query:
            self._rows, self.description = self._session.call(query, params or ()), True
            return self
        if params is not None:
            query = base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
        if query.startswith("(SELECT"):  # SQLite joins no parts in parentheses
            query = "SELECT * FROM " + query.replace(") UNION ALL (", ") UNION ALL SELECT * FROM (")
        self._rows, self.rowcount = self._session.execute(query, tuple(params or ()))
        return self

    def fetchone(self) -> Row | None:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Row]:
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchall(self) -> list[Row]:
        return self.fetchmany(len(self._rows))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())

    def close(self) -> None:
        pass


class _Features(features.DatabaseFeatures):
    max_query_params = 999


class _PostgreSQLFeatures(_Features):
    has_select_for_update = True
    has_select_for_update_skip_locked = True
    supports_slicing_ordering_in_compound = True


class SiteConnection(base.DatabaseWrapper):
    """A connection of Django's."""

    features_class = _Features

    def __init__(self, settings: dict[str, Any], alias: str, database: SiteDatabase) -> None:
        self._database = database
        if database.kind == POSTGRESQL:
            self.vendor = "postgresql"
            self.features_class = _PostgreSQLFeatures
        super().__init__(settings, alias)

    def get_new_connection(self, conn_params: Any) -> Session:
        return self._database.connect()

    def create_cursor(self, name: Any = None) -> Cursor:
        return Cursor(self.connection)

    def _set_autocommit(self, autocommit: bool) -> None:
        if self.connection.is_lost:
            with self.wrap_database_errors:
                raise sqlite3.OperationalError("the connection is closed")

    def _start_transaction_under_autocommit(self) -> None:
        self.connection.begin()

    def close(self) -> None:
        BaseDatabaseWrapper.close(self)


class _OfGreenlets:
    """Takes the place of Django's connections of a thread."""

    def __init__(self) -> None:
        self._of: dict[Any, dict[str, Any]] = {}

    def _here(self) -> dict[str, Any]:
        here: dict[str, Any] = self.__dict__["_of"].setdefault(getcurrent(), {})
        return here

    def __getattr__(self, name: str) -> Any:
        try:
            return self._here()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_of":
            self.__dict__[name] = value
        else:
            self._here()[name] = value

    def __delattr__(self, name: str) -> None:
        del self._here()[name]


@contextlib.contextmanager
def connected(database: SiteDatabase) -> Iterator[None]:
    """Let each greenlet have a connection to this database within this block."""
    settings = connections.settings["default"]

    def connection(alias: str) -> SiteConnection:
        return SiteConnection(settings, alias, database)

    with (
        mock.patch.object(connections, "_connections", _OfGreenlets()),
        mock.patch.object(connections, "create_connection", connection),
    ):
        yield
