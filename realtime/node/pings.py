"""Pings that the server sends, with one timer for all clients of a node.

The clients stand on a wheel. Its slots come by one after another, all of them once in each
interval. A client stays in its slot, and so gets one ping in each interval:

    slot n       comes by: each client in it is pinged
    slot n - k   came by k turns ago, at least `pong_timeout`: clients that owe a pong are closed

A client begins in a slot that comes by after half an interval at the soonest. Which one it is, is
left to chance, so that clients that came at the same moment are not pinged at the same moment.

Each client:

    QUIET ── pinged ──► OWING ── its pong ──► QUIET
                          └──── looked at k turns later: closed

Invariants:

- A client that owes a pong gets no further ping, so it never owes two.
- A turn that comes late by less than a turn's time does not delay the next one, or the interval
  of a busy process would grow until clients give up. One that comes later delays all that follow.
- `k` has one turn to spare, so no client has less time for its pong than `pong_timeout`, also if
  its ping came late.
- After a pause of the process, in which pongs have come and are not read yet, the next turn closes
  no client.
- A client whose pong may wait behind a slow command of its own is not closed before the next look.
- The timer runs only while there are clients.
"""

from __future__ import annotations

import math
import random
from typing import Protocol, TypeAlias

from realtime.timers import Timers

SLOTS = 100
"""Slots of the wheel. With a ping every 25 seconds, one comes by every 250 ms."""

PAUSE = 0.25
"""The part of `pong_timeout` by which a turn may come late without being a pause."""


class Pinged(Protocol):
    """A client, as the wheel sees it."""

    def ping(self) -> None:
        """Send a ping, unless the client owes a pong. Must not raise."""

    def check_pong(self) -> None:
        """Begin to close the connection if the client owes a pong and has not sent it.

        Must not raise.
        """


Slot: TypeAlias = dict[Pinged, None]
"""The clients that are pinged in the same turn."""


class Pings:
    """The wheel. Belongs to the event loop of its node."""

    def __init__(self, timers: Timers, interval: float, pong_timeout: float) -> None:
        """
        Args:
            interval: seconds between two pings of a client; 0 for no pings.
            pong_timeout: seconds that a pong may take, less than `interval`; 0: none is expected.
        """
        self._timers = timers
        self._timer = timers.timer(self._turn)
        self.is_on = interval > 0
        """Whether there are pings at all."""
        self.expects_pongs = self.is_on and pong_timeout > 0
        """Whether clients must answer."""
        self._turn_seconds = interval / SLOTS
        self._pause = pong_timeout * PAUSE
        self._wait = 0
        """The `k` of the module's docstring."""
        if self.expects_pongs:
            self._wait = min(math.ceil(pong_timeout / self._turn_seconds) + 1, SLOTS - 1)
        self._slots: tuple[Slot, ...] = tuple({} for _ in range(SLOTS))
        self._next = 0
        """Number of the slot that comes by next."""
        self._clients = 0
        self._due = 0.0
        """When it comes by."""

    def add(self, client: Pinged) -> Slot:
        """Ping a client from now on.

        Returns:
            Its slot, for `remove`.
        """
        if not self._clients:
            self._set_timer(self._timers.now())
        self._clients += 1
        # no secret: spreads pings
        slot = self._slots[(self._next + random.randrange(SLOTS // 2, SLOTS)) % SLOTS]
        slot[client] = None
        return slot

    def remove(self, client: Pinged, slot: Slot) -> None:
        """Ping a client no more; unknown ones are ignored."""
        if client in slot:
            del slot[client]
            self._clients -= 1
            if not self._clients:
                self._timer.set(None)

    def _set_timer(self, begin: float) -> None:
        self._due = begin + self._turn_seconds
        self._timer.set(self._due)

    def _turn(self) -> None:
        now, due = self._timers.now(), self._due
        number, self._next = self._next, (self._next + 1) % SLOTS
        if self.expects_pongs and now <= due + self._pause:
            for client in list(self._slots[number - self._wait]):
                client.check_pong()
        for client in list(self._slots[number]):
            client.ping()
        if self._clients:
            self._set_timer(due if now < due + self._turn_seconds else now)
