"""The database connections of a test, shared with the threads that run functions of the site.

What a test wrote in the transaction that Django puts around it is seen on its connection only, and
so is an SQLite database in memory. Everything else is committed: for it the threads use connections
of their own, which are closed after each call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connections

T = TypeVar("T")


RELEASE_TIMEOUT = 10.0
"""Seconds that a function of the site may still run after the end of the test."""


class Databases:
    """The connections that a test shares."""

    def __init__(self) -> None:
        self._shared: dict[str, Any] = {}
        """By alias."""
        self._lock = threading.RLock()
        """A connection serves one thread at a time."""

    def share(self) -> None:
        """Share those connections of this thread that other threads cannot open themselves."""
        for connection in connections.all():
            known = self._shared.get(connection.alias)
            if connection is known or not _must_be_shared(connection):
                continue
            if known is not None and known.in_atomic_block and not connection.in_atomic_block:
                continue
            connection.inc_thread_sharing()
            if known is not None:
                known.dec_thread_sharing()
            self._shared[connection.alias] = connection

    def release(self) -> None:
        """Share no connection any longer.

        Raises:
            RuntimeError: a function of the site still uses one.
        """
        if not self._lock.acquire(timeout=RELEASE_TIMEOUT):
            raise RuntimeError(
                "A hook, or a receiver of a signal, still uses the database of the test"
                f" {RELEASE_TIMEOUT:g} s after the end of the test."
            )
        try:
            while self._shared:
                self._shared.popitem()[1].dec_thread_sharing()
        finally:
            self._lock.release()

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use the shared connections in this thread. Other threads wait."""
        if not self._shared:
            with _closed_afterwards():
                yield
            return
        with self._lock, _closed_afterwards():
            own = {connection.alias: connection for connection in _opened()}
            for alias, connection in self._shared.items():
                connections[alias] = connection
            try:
                yield
            finally:
                for alias in self._shared:
                    if alias in own:
                        connections[alias] = own[alias]
                    else:
                        del connections[alias]

    def run(self, work: Callable[[], T]) -> T:
        """Call a function that uses the shared connections."""
        with self.use():
            return work()


def _must_be_shared(connection: Any) -> bool:
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
    """Return the connections that this thread has opened."""
    return connections.all(initialized_only=True)
