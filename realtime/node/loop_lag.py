"""Loop lag: how late the event loop is with what is due. Every client feels it.

A timer that is due at a known moment runs late by as much as the loop was held by other work.

    ON TIME ──a look is late by more than `limit`──► LATE ──it stays so for PATIENCE──► OVERLOADED
       ▲                                              │                                     │
       └──────────────── a look is on time ───────────┴─────────────────────────────────────┘

A short pause, such as a collection of garbage, is not an overload.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import islice

from realtime.timers import Timers

INTERVAL = 0.5
"""Seconds between two looks."""
REMEMBERED = 60
"""Looks that are remembered: half a minute, so that a scraper sees each lag once or twice."""
SUSTAINED = 6
"""Looks of those, a tenth, that must be late by as much until the lag counts as sustained."""
PATIENCE = 3.0
"""Seconds of lateness until a process counts as overloaded."""


class LoopLag:
    """Measures the lag of an event loop from `start` on, until its timers are closed."""

    def __init__(self, timers: Timers, limit: float = 0.0) -> None:
        """`limit`: seconds of lag from which on the loop is late; 0: it never is."""
        self._timers = timers
        self._limit = limit
        self._timer = timers.timer(self._look)
        self._due = 0.0
        self._lags: deque[float] = deque(maxlen=REMEMBERED)
        self._late_since: float | None = None

    @property
    def seconds(self) -> float:
        """The largest lag of the last half minute; 0 before the first look."""
        return max(self._lags, default=0.0)

    def of_last(self, seconds: float) -> float:
        """Return the largest lag of the last `seconds`, up to half a minute."""
        return max(islice(reversed(self._lags), int(seconds / INTERVAL)), default=0.0)

    @property
    def sustained(self) -> float:
        """The lag that a tenth of the looks of the last half minute reached, seconds.

        One pause, such as the start of the process, does not count.
        """
        worst = heapq.nlargest(SUSTAINED, self._lags)
        return worst[-1] if len(worst) == SUSTAINED else 0.0

    @property
    def is_overloaded(self) -> bool:
        """Whether the loop has been late for `PATIENCE`."""
        since = self._late_since
        return since is not None and self._timers.now() - since >= PATIENCE

    def start(self) -> None:
        """Begin to look."""
        self._set(self._timers.now())

    def _set(self, now: float) -> None:
        self._due = now + INTERVAL
        self._timer.set(self._due)

    def _look(self) -> None:
        now = self._timers.now()
        lag = max(0.0, now - self._due)
        self._lags.append(lag)
        if not 0 < self._limit < lag:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = now  # a process that was stopped for a while is not overloaded
        self._set(now)
