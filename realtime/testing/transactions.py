"""What would happen after a commit, in tests whose own transaction is never committed.

Django's `TestCase`, and the mark `django_db` of pytest, wrap a test in a transaction and roll
it back. A transaction of the code under test is a savepoint in it, and what is registered
for after its commit waits for ever. Here it happens as soon as somebody looks, once the code
has left its own transaction; what was rolled back Django has forgotten by then.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connections

from realtime.server_api.transactions import CommitHook, is_under_way

logger = logging.getLogger("realtime.testing")

_lock = threading.RLock()


class Committed:
    """Does what waits for a commit. Knows the connections of the thread that made it."""

    def __init__(self) -> None:
        self._connections = connections.all(initialized_only=True)
        self._before = set(self._waiting())
        """What waited already: it belongs to nobody who looks here."""

    def happen(self) -> None:
        """Do what transactions of the code under test have left behind, in its order.

        Failures are logged, as after a commit.
        """
        if any(not work.done and work not in self._before for work in self._waiting()):
            without_loop(self._happen)

    def _happen(self) -> None:
        with _lock:
            for work in self._waiting():
                if work.running:
                    return  # what comes after it is not due yet
                if work.done or work in self._before:
                    continue
                try:
                    work()
                except Exception:
                    logger.exception("%s failed after the commit", work.__qualname__)

    def _waiting(self) -> Iterator[CommitHook]:
        here = connections.all(initialized_only=True)
        for connection in {id(known): known for known in [*self._connections, *here]}.values():
            if is_under_way(connection):
                continue
            waiting: list[Any] = list(connection.run_on_commit)
            for _, work, _ in waiting:
                if isinstance(work, CommitHook):
                    yield work


def without_loop(work: Callable[[], None]) -> None:
    """Do something now that must not be done on an event loop; on one, the loop stands still.

    The work must wait for nothing of that loop: the service has its own.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
