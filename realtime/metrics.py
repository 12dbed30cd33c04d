"""Counters of one process since its start, and outages, which get one log line each."""

from __future__ import annotations

import bisect
import math
import time


class Tally:
    """Counts by labels, such as codes.

    A site chooses some of the codes. So a tally has a bound: labels that come after it are
    counted together, as `OTHER`.
    """

    MAX_LABELS = 200
    OTHER = "other"

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, *labels: str) -> None:
        """Count one more. Every call has the same number of labels."""
        counts = self._counts
        if labels not in counts and len(counts) >= self.MAX_LABELS:
            labels = (self.OTHER,) * len(labels)
        counts[labels] = counts.get(labels, 0) + 1

    def counts(self) -> dict[tuple[str, ...], int]:
        """Return the count of each combination of labels."""
        return self._counts.copy()


class Durations:
    """How long something of one kind took, as a histogram."""

    BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
    """Upper bounds of all buckets but the last, seconds."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(self.BOUNDS) + 1)
        """How many took at most the bound of each, and more than that of the one before."""
        self.total = 0.0
        """Seconds of all of them."""

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect.bisect_left(self.BOUNDS, seconds)] += 1
        self.total += seconds


class Deliveries:
    """The deliveries in the channels of one namespace."""

    __slots__ = ("count", "namespace")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.count = 0
        """Publications pushed to clients, counted once for each client."""


class Counters:
    """What one process has counted since its start.

    Threads count without a lock, which would cost every publication more than a count that is
    sometimes lost.
    """

    def __init__(self) -> None:
        self.published_by_clients = 0
        self.published_by_server = 0
        """Publications of the site and of the server API, made in this process."""
        self._deliveries: dict[str, Deliveries] = {}
        self.opened = 0
        """Connections that were opened."""
        self.disconnects = Tally()
        """Connections that ended, by code; "0" where the client went."""
        self.commands = 0
        """Commands of clients."""
        self.command_errors = Tally()
        """Commands of clients that failed, by method and code."""
        self.recoveries = Tally()
        """Clients that asked for recovery, by "recovered" and "not recovered"."""
        self.interruptions = 0
        """How often the engine was interrupted."""
        self.lost_streams = 0
        """Streams that did not go on from the position of this node."""

    @property
    def published(self) -> int:
        """Publications made in this process."""
        return self.published_by_clients + self.published_by_server

    @property
    def delivered(self) -> int:
        """Publications pushed to clients, counted once for each client."""
        return sum(each.count for each in self._deliveries.values())

    def deliveries(self, namespace: str) -> Deliveries:
        """Return what counts the deliveries in a namespace, one that is configured."""
        return self._deliveries.setdefault(namespace, Deliveries(namespace))

    def delivered_in(self) -> dict[str, int]:
        """Return the number of deliveries in each namespace."""
        return {name: each.count for name, each in self._deliveries.copy().items()}


class Outage:
    """A time in which something fails again and again. Its first failure is worth a log line.

    Where its cause was logged already, by `announced`, no failure is, until `over`.
    """

    QUIET = 60.0
    """Seconds without a failure after which an outage is over."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._announced = 0

    def begins(self) -> bool:
        """Note a failure. Return whether it is the first of an outage that was not announced."""
        now = time.monotonic()
        last, self._last = self._last, now
        return now - last >= self.QUIET and not self._announced

    def within(self, seconds: float) -> bool:
        """Return whether something failed, or was interrupted, in the last `seconds`."""
        return self._announced > 0 or time.monotonic() - self._last < seconds

    def announced(self) -> None:
        """Note that the reason for failures from now on is in the log."""
        self._announced += 1

    def over(self) -> None:
        """End what `announced` began; a failure that was under way is not logged."""
        self._announced = max(0, self._announced - 1)
        self._last = time.monotonic()
