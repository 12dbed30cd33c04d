"""A lock that a forked process finds open, whoever held it in its parent."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ForkSafeLock:
    """A re-entrant lock for module-level state; use it with `with`.

    A process may be forked (by Celery, say) while another of its threads holds the lock. That
    thread does not exist in the child, and would never let go.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
