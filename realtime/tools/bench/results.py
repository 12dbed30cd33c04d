"""What connections received, counted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

_STEP = math.log(1.02)
"""A latency is known to two percent."""
_SHORTEST = 1e-6
"""Seconds."""


@dataclass
class ReceivedCounts:
    """What connections received, those of one process or of all."""

    deliveries: int = 0
    """Without those that came twice."""
    twice: int = 0
    out_of_order: int = 0
    closed: int = 0
    """Connections that ended before the measure did."""
    latencies: Counter[int] = field(default_factory=Counter)
    """Number of deliveries by the logarithm of their latency."""

    def add(self, seconds: float) -> None:
        """Count a delivery. `seconds`: from publish to arrival."""
        self.deliveries += 1
        self.latencies[math.ceil(math.log(max(seconds, _SHORTEST)) / _STEP)] += 1

    def join(self, other: ReceivedCounts) -> None:
        """Add what other connections received."""
        self.deliveries += other.deliveries
        self.twice += other.twice
        self.out_of_order += other.out_of_order
        self.closed += other.closed
        self.latencies.update(other.latencies)

    def latency(self, share: float) -> float | None:
        """Return the seconds within which this share of the deliveries came.

        Returns:
            None without deliveries; otherwise up to two percent more than the true value.
        """
        rest = share * self.deliveries
        for logarithm in sorted(self.latencies):
            rest -= self.latencies[logarithm]
            if rest <= 0:
                return math.exp(logarithm * _STEP)
        return None

    def encoded(self) -> dict[str, Any]:
        """Return its form for JSON."""
        return {**vars(self), "latencies": list(self.latencies.items())}

    @classmethod
    def decoded(cls, fields: dict[str, Any]) -> Self:
        """Return what `encoded` returned the form of."""
        return cls(**{**fields, "latencies": Counter(dict(fields["latencies"]))})


class Sequence:
    """The publications that one connection received: numbers, which should come one by one.

    Invariant: `_missing` has the numbers below `_next` that have not come.
    """

    def __init__(self, received: ReceivedCounts) -> None:
        """`received`: counts what comes."""
        self._received = received
        self._next = 0
        self._missing: set[int] = set()

    def take(self, number: int, seconds: float) -> None:
        """Count a publication. `seconds`: from publish to arrival."""
        if number >= self._next:
            self._missing.update(range(self._next, number))
            self._next = number + 1
        elif number in self._missing:
            self._missing.remove(number)
            self._received.out_of_order += 1
        else:
            self._received.twice += 1
            return
        self._received.add(seconds)
