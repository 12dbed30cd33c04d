"""One timer of the event loop for all clients of a node.

Every client has deadlines that move: each refresh, and each frame to an emulated client, moves one
later. So deadlines stand in a heap of our own. An idle client costs one small entry or none, and
moving a deadline later changes one attribute.

States of a timer, and the attributes that tell them:

                deadline   _queued_at
    UNSET       None       None         no entry in the heap counts
    WAITING     d          q <= d       the entry for q counts
    CLEARED     None       q            the entry for q counts, and will do nothing
    CANCELLED   None       None         and no callback; final

Events:

    set(d)      UNSET              push an entry for d → WAITING
                WAITING, CLEARED   d < q: push an entry for d, the one for q is dead → WAITING
                                   d >= q: nothing is pushed → WAITING
    set(None)   WAITING → CLEARED
    cancel      any → CANCELLED; the entry that counted is dead
    due at q    WAITING, d <= now  → UNSET, then the callback
                WAITING, d > now   push an entry for d → WAITING
                CLEARED → UNSET

Invariants:

- At most one entry per timer counts, the one for `_queued_at`. Entries that are dead do nothing;
  they leave the heap when they are due, or when too many timers were cancelled.
- `_queued_at <= deadline`, so no callback comes late because its deadline was moved.
- The callback runs once for each deadline that is reached, never before it, and never after
  `cancel` or `Timers.close`.
- While the heap is not empty the loop has one handle, due at its first entry or before it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

MAX_DEAD = 64
"""Entries of cancelled timers that the heap may hold before it is rebuilt."""


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
        """Move the deadline. Without effect after `cancel`.

        Args:
            deadline: loop time in seconds; None for no deadline.
        """
        if self._callback is None:
            return
        self.deadline = deadline
        if deadline is not None and (self._queued_at is None or deadline < self._queued_at):
            self._queued_at = deadline
            self._timers._queue(deadline, self)

    def cancel(self) -> None:
        """Never call back again, and drop the reference to the callback."""
        self.deadline = None
        self._callback = None
        if self._queued_at is not None:
            self._queued_at = None
            self._timers._cancelled()

    def _pop(self, queued_at: float, now: float) -> None:
        """Handle an entry of this timer that is due."""
        if queued_at != self._queued_at:
            return
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
        """Second item of entries, so that timers are never compared."""
        self._handle: asyncio.Handle | None = None
        self._wakes_at = 0.0
        """When the handle is due. uvloop's handles do not know it once it is past."""
        self._dead = 0
        """Cancelled timers since the heap was rebuilt, which had an entry."""
        self._closed = False

    def now(self) -> float:
        """Return the loop's time: monotonic seconds."""
        return self._loop.time()

    def timer(self, callback: Callable[[], object]) -> Timer:
        """Return a timer that is not set yet. The callback must not raise."""
        return Timer(self, callback)

    def close(self) -> None:
        """Call back no timer any more, including timers that are set later."""
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()

    def _cancelled(self) -> None:
        self._dead += 1
        if self._dead > MAX_DEAD and self._dead > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2]._queued_at == entry[0]]
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
