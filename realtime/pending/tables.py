"""Which databases have the tables, and how PostgreSQL tells a relay of new rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections, router

from realtime.pending.models import Pending

RECHECK = 2.0
MAX_RECHECK = 60.0
"""Seconds between looks for the table in a database that had none; each is twice as long."""


def with_table(among: Sequence[str] | None = None) -> list[str]:
    """Return the aliases of the databases that have the table, by the site's routers.

    Args:
        among: aliases to look at; None: all.
    """
    aliases = [alias for alias in connections if among is None or alias in among]
    return [
        alias
        for alias in aliases
        if router.allow_migrate_model(alias, Pending)
        and Pending._meta.db_table in connections[alias].introspection.table_names()
    ]


class Tables:
    """The databases of one relay. Belongs to its thread, as the connections do."""

    def __init__(self, notification: str, wake: Callable[[], None]) -> None:
        """
        Args:
            notification: the channel of PostgreSQL to listen to.
            wake: wakes the relay, when one comes in the middle of a query.
        """
        self._notification = notification
        self._wake = wake
        self._known: list[str] = []
        self._interval = RECHECK
        self._recheck_at = 0.0
        self._listening: dict[str, Any] = {}
        """Database → the connection of psycopg that listens."""

    def databases(self) -> list[str]:
        """Return the databases that have the table. Never raises."""
        if time.monotonic() >= self._recheck_at:
            for alias in connections:
                if alias not in self._known and self._finds(alias):
                    self._known.append(alias)
            self._recheck_at = time.monotonic() + self._interval
            self._interval = min(2 * self._interval, MAX_RECHECK)
        return self._known

    def _finds(self, alias: str) -> bool:
        with contextlib.suppress(Exception):  # of every database, which is away, and of routers
            if with_table([alias]):
                return True
        self.close(alias)
        return False

    def close(self, alias: str) -> None:
        """Close a connection; the next query opens a new one."""
        self._listening.pop(alias, None)
        with contextlib.suppress(Exception):  # of every database
            connections[alias].close()

    def open(self, alias: str) -> None:
        """Open a connection, if there is none, and have it commit what is in no transaction."""
        if not connections[alias].get_autocommit():  # the option AUTOCOMMIT
            connections[alias].set_autocommit(True)

    def listen(self, alias: str) -> None:
        """Listen to other processes, where the database is PostgreSQL with psycopg 3."""
        connection = connections[alias]
        if connection.vendor != "postgresql":
            return
        connection.ensure_connection()
        driver = connection.connection
        if self._listening.get(alias) is driver or not hasattr(driver, "pgconn"):
            return
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {self._notification}")
        driver.add_notify_handler(lambda _: self._wake())
        self._listening[alias] = driver

    def files(self) -> list[int]:
        """Return the files to wait for: connections that listen. Lost ones are closed."""
        files = []
        for alias, driver in list(self._listening.items()):
            try:
                files.append(driver.fileno())
            except Exception:  # of psycopg, which is not installed everywhere
                self.close(alias)
        return files

    def consume(self) -> None:
        """Read what arrived. Connections that were lost are closed."""
        for alias, driver in list(self._listening.items()):
            try:
                driver.pgconn.consume_input()
                while driver.pgconn.notifies():
                    pass
            except Exception:  # of psycopg, which is not installed everywhere
                self.close(alias)
