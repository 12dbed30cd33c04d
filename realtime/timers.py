"""One timer of the event loop for all clients of a node.

A heap of deadlines instead of a timer a client: an idle connection costs one small entry
or none, and moving a deadline later, which is what a refresh does, touches only the entry.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

DEAD_ALLOWED = 64
"""Entries of cancelled timers the heap may hold before it is looked at."""


class Timer:
    """A callback with a deadline that can be moved. Made by `Timers.timer`."""

    __slots__ = ("_callback", "_queued_at", "_timers", "deadline")

    def __init__(self, timers: Timers, callback: Callable[[], object]) -> None:
        self._timers = timers
        self._callback: Callable[[], object] | None = callback
        self._queued_at: float | None = None
        self.deadline: float | None = None
        """Loop time in seconds; None: not set."""

    def set(self, deadline: float | None) -> None:
        """Call back at `deadline` (loop time, seconds); None: not at all."""
        if self._callback is None:
            return
        self.deadline = deadline
        if deadline is not None and (self._queued_at is None or deadline < self._queued_at):
            self._queued_at = deadline
            self._timers._queue(deadline, self)

    def cancel(self) -> None:
        """Never call back any more, and let go of the callback."""
        self.deadline = None
        self._callback = None
        if self._queued_at is not None:
            self._queued_at = None
            self._timers._cancelled()

    def is_queued_at(self, deadline: float) -> bool:
        """Whether the heap's entry for this deadline is still the one that counts."""
        return self._queued_at == deadline

    def _pop(self, queued_at: float, now: float) -> None:
        if queued_at != self._queued_at:
            return  # an earlier entry of this timer is, or was, in the heap
        self._queued_at = None
        if self.deadline is None or self._callback is None:
            return
        if self.deadline > now:
            self.set(self.deadline)
            return
        self.deadline = None
        self._callback()


class Timers:
    """The heap. Belongs to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._handle: asyncio.Handle | None = None
        self._wakes_at = 0.0
        """When the handle is due. uvloop's own do not say it where that is past."""
        self._dead = 0
        self._closed = False

    def now(self) -> float:
        """The loop's clock: monotonic seconds."""
        return self._loop.time()

    def timer(self, callback: Callable[[], object]) -> Timer:
        """A timer that is not set yet. The callback must not raise."""
        return Timer(self, callback)

    def close(self) -> None:
        """Call back no more timers, those set from now on included."""
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()

    def _cancelled(self) -> None:
        """An entry of the heap counts no more; with many of them the heap is made anew."""
        self._dead += 1
        if self._dead > DEAD_ALLOWED and self._dead > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].is_queued_at(entry[0])]
            heapq.heapify(self._heap)
            self._dead = 0

    def _queue(self, deadline: float, timer: Timer) -> None:
        if self._closed:
            return
        heapq.heappush(self._heap, (deadline, next(self._order), timer))
        if self._handle is None or deadline < self._wakes_at:
            self._schedule()

    def _schedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._wakes_at = self._heap[0][0]
        self._handle = self._loop.call_at(self._wakes_at, self._run)

    def _run(self) -> None:
        self._handle = None
        now = self._loop.time()
        try:
            while self._heap and self._heap[0][0] <= now:
                queued_at, _, timer = heapq.heappop(self._heap)
                timer._pop(queued_at, now)
        finally:
            if self._heap and self._handle is None:
                self._schedule()
