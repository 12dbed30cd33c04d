"""Idempotency keys of the memory engine: which were used, and for which position.

A key is remembered for its lifetime. Memory is bounded: beyond `MAX_KEYS`, those whose lifetime
ends first are forgotten, and a repetition with one of them is published again.
"""

from __future__ import annotations

from heapq import heappop, heappush

from realtime.protocol.messages import StreamPosition
from realtime.timers import Timers

MAX_KEYS = 100_000
"""Keys that are remembered, some 30 MB."""


class OnceKeys:
    """Digests of used keys, each with the position of its publication; None without history."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._positions: dict[str, StreamPosition | None] = {}
        self._ends: list[tuple[float, str]] = []
        """A heap of the ends of lifetimes, one for each key."""
        self._timer = timers.timer(self._expire)

    def __contains__(self, digest: str) -> bool:
        return digest in self._positions

    def __getitem__(self, digest: str) -> StreamPosition | None:
        return self._positions[digest]

    def add(self, digest: str, position: StreamPosition | None, lifetime: float) -> None:
        """Remember an unused key for `lifetime` seconds."""
        self._positions[digest] = position
        heappush(self._ends, (self._timers.now() + lifetime, digest))
        if len(self._ends) > MAX_KEYS:
            self._forget_first()
        self._timer.set(self._ends[0][0])

    def _forget_first(self) -> None:
        del self._positions[heappop(self._ends)[1]]

    def _expire(self) -> None:
        while self._ends and self._ends[0][0] <= self._timers.now():
            self._forget_first()
        if self._ends:
            self._timer.set(self._ends[0][0])
