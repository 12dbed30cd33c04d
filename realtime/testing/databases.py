"""The database connections of a test, lent to the threads in which functions of the site run.

What a test wrote in the transaction that Django wraps around it is seen on its connection
only, and so is an SQLite database in memory. Everything else is committed: there the threads
use connections of their own, which are closed after each call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connections

T = TypeVar("T")


RETURN_TIMEOUT = 10.0
"""Seconds a function of the site has to end with the test."""


class Databases:
    """The connections that are lent."""

    def __init__(self) -> None:
        self._lent: dict[str, Any] = {}
        self._lock = threading.RLock()
        """A connection serves one thread at a time."""

    def lend(self) -> None:
        """Lend those connections of this thread that others cannot replace."""
        for connection in connections.all():
            known = self._lent.get(connection.alias)
            if connection is known or not _is_irreplaceable(connection):
                continue
            if known is not None and known.in_atomic_block and not connection.in_atomic_block:
                continue
            connection.inc_thread_sharing()
            if known is not None:
                known.dec_thread_sharing()
            self._lent[connection.alias] = connection

    def take_back(self) -> None:
        """Lend none any more.

        Raises:
            RuntimeError: a function of the site does not give one back.
        """
        if not self._lock.acquire(timeout=RETURN_TIMEOUT):
            raise RuntimeError(
                "A hook, or a receiver of a signal, uses the database of the test for more than"
                f" {RETURN_TIMEOUT:g} s after it ended."
            )
        try:
            while self._lent:
                self._lent.popitem()[1].dec_thread_sharing()
        finally:
            self._lock.release()

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Use them in this thread. Whoever else wants to waits."""
        if not self._lent:
            with _closed_afterwards():
                yield
            return
        with self._lock, _closed_afterwards():
            own = {connection.alias: connection for connection in _opened()}
            for alias, connection in self._lent.items():
                connections[alias] = connection
            try:
                yield
            finally:
                for alias in self._lent:
                    if alias in own:
                        connections[alias] = own[alias]
                    else:
                        del connections[alias]

    def run(self, work: Callable[[], T]) -> T:
        """Run something with them."""
        with self.borrowed():
            return work()


def _is_irreplaceable(connection: Any) -> bool:
    in_memory = getattr(connection, "is_in_memory_db", None)
    return connection.in_atomic_block or (in_memory is not None and in_memory())


@contextmanager
def _closed_afterwards() -> Iterator[None]:
    try:
        yield
    finally:
        for connection in _opened():
            connection.close()


def _opened() -> Sequence[Any]:
    """The connections that this thread has of its own."""
    return connections.all(initialized_only=True)
