"""How a producer learns that its answer has ended elsewhere, while its model thinks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("realtime.answers")


class CancellationToken:
    """Fires when the answer ends elsewhere. `run_stream` of pydantic-ai takes it, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether the producer should stop."""
        return self._is_cancelled

    cancelled = is_cancelled

    def cancel(self) -> None:
        """Have the producer stop. May be called from any thread."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception:  # such as one of an event loop that is closed
                logger.exception("A callback of an answer that ended failed")

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call this once when it fires, in the thread that notices; at once if it has."""
        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(callback)
                return
        callback()

    # pydantic-ai calls its own token so

    def _register(self, run: Any) -> None:
        self.on_cancel(run.cancel)

    def _unregister(self, run: Any) -> None:
        with self._lock:
            if run.cancel in self._callbacks:
                self._callbacks.remove(run.cancel)
