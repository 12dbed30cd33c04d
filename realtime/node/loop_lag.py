"""How late the event loop of a node is: the lag that every client feels.

A timer that is due at a known moment runs late by as much as the loop was held by other work.
"""

from __future__ import annotations

import asyncio
from collections import deque

INTERVAL = 0.5
"""Seconds between two measurements."""
REMEMBERED = 60
"""Measurements that are looked at: half a minute, so that a scraper sees each lag once or twice."""


class LoopLag:
    """Measures the lag of an event loop, from `start` to `stop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lags: deque[float] = deque(maxlen=REMEMBERED)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """The largest lag of the last half minute; 0 before the first measurement."""
        return max(self._lags, default=0.0)

    def start(self) -> None:
        """Begin to measure."""
        due = self._loop.time() + INTERVAL
        self._timer = self._loop.call_at(due, self._measure, due)

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _measure(self, due: float) -> None:
        self._lags.append(max(0.0, self._loop.time() - due))
        self.start()
