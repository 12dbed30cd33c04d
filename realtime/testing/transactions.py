"""Work for after a commit, in tests whose own transaction is never committed.

Django's `TestCase`, and the mark `django_db` of pytest, wrap a test in a transaction and roll it
back. A transaction of the code under test is a savepoint in it, and its commit hooks would never
run. Here they run at the next look, once the code has left its own transaction; Django has removed
those of a transaction that was rolled back by then.
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
"""Hooks run in one thread at a time, in their order."""


class CommitHooks:
    """Runs the commit hooks of the code under test. Made in the thread of the test."""

    def __init__(self) -> None:
        self._connections = connections.all(initialized_only=True)
        self._earlier = set(self._registered())
        """Hooks of code that ran before: they are not run here."""

    def run(self) -> None:
        """Run the hooks whose transaction has ended, in their order.

        Failures are logged, as after a commit.
        """
        if any(not hook.done and hook not in self._earlier for hook in self._registered()):
            without_loop(self._run)

    def _run(self) -> None:
        with _lock:
            for hook in self._registered():
                if hook.running:
                    return  # those after it are not due yet
                if hook.done or hook in self._earlier:
                    continue
                try:
                    hook()
                except Exception:
                    logger.exception("%s failed after the commit", hook.__qualname__)

    def _registered(self) -> Iterator[CommitHook]:
        here = connections.all(initialized_only=True)
        for connection in {id(known): known for known in [*self._connections, *here]}.values():
            if is_under_way(connection):
                continue
            registered: list[Any] = list(connection.run_on_commit)
            for _, hook, _ in registered:
                if isinstance(hook, CommitHook):
                    yield hook


def without_loop(work: Callable[[], None]) -> None:
    """Run a function in a thread without an event loop, and wait.

    The function must not wait for the loop of the caller, which stands still meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
