"""Counters of one process since its start, and outages, which get one log line each."""

from __future__ import annotations

import math
import time


class Counters:
    """Numbers that only grow.

    Threads count without a lock, which would cost every publication more than a count that is
    sometimes lost.
    """

    __slots__ = ("delivered", "published")

    def __init__(self) -> None:
        self.published = 0
        """Publications made in this process."""
        self.delivered = 0
        """Publications pushed to clients, counted once for each client."""


class Outage:
    """A time in which something fails again and again. Its first failure is worth a log line."""

    QUIET = 60.0
    """Seconds without a failure after which an outage is over."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -math.inf

    def begins(self) -> bool:
        """Note a failure. Return whether it is the first of an outage."""
        now = time.monotonic()
        last, self._last = self._last, now
        return now - last >= self.QUIET
