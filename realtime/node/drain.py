"""Drain: the connections of a node that ends are closed at an even rate.

They reconnect to other nodes, which can take a certain number in a second. The oldest connections
are closed first.

    serving ──begin──► draining ─the last one is closed─► over
                          │                                ▲
                          └──────────hurry─────────────────┘

- serving: the node is ready for clients.
- draining: readiness is off; new connections are closed at once; of the others CLOSE_AT_ONCE were
  closed when it began, and the rest follows evenly until `seconds` have passed. Everything else,
  such as publications, the server API and heartbeats, goes on.
- over: the node has closed every connection. It may end.

Invariants: no state is left for an earlier one. `begin` in any state but "serving" does nothing,
and so does `hurry` in any but "draining". A connection is closed once by a drain. Those that go by
themselves are not waited for: a drain without connections is over.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from realtime.errors import Disconnect, DisconnectShutdown
from realtime.protocol.messages import ClientID

CLOSE_AT_ONCE = 20
"""Connections that are closed when a drain begins, so that a small node ends at once."""
CLOSE_INTERVAL = 0.05
"""Seconds between two slices of connections that are closed."""


class Closable(Protocol):
    """A connection to close before the node ends: a client, or a relayed request of one."""

    id: ClientID
    """Client ID; "" for a client of another node."""

    def close(self, disconnect: Disconnect | None) -> None:
        """Begin to close the connection. Returns at once."""


@dataclass(eq=False, repr=False)
class Drain:
    """See the module. Belongs to the event loop of its node."""

    _loop: asyncio.AbstractEventLoop
    _connections: Collection[Closable]
    """All of the node, now and later, in the order in which they were opened."""
    _seconds: float
    """The time over which they are closed."""
    is_draining: bool = False
    """Whether it has begun; also when it is over."""
    over_at: float = math.inf
    """When it was over, seconds of the loop's clock."""
    _waiting: deque[Closable] = field(default_factory=deque)
    """Those that were open when the drain began, and are not closed yet."""
    _began_at: float = 0.0
    _rate: float = 0.0
    """Connections to close in a second, after those that were closed at once."""
    _closed_since: int = 0
    """Connections that were closed, or went by themselves, after those."""
    _timer: asyncio.TimerHandle | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether every connection was closed."""
        return self._over.is_set()

    @property
    def elapsed(self) -> float:
        """Seconds since it began; 0 before."""
        return self._loop.time() - self._began_at if self.is_draining else 0.0

    def begin(self) -> None:
        """Begin to close the connections. Returns at once."""
        if self.is_draining:
            return
        self.is_draining = True
        self._began_at = self._loop.time()
        self._waiting = deque(self._connections)
        self._close(min(CLOSE_AT_ONCE, len(self._waiting)))
        if self._seconds > 0:
            self._rate = len(self._waiting) / self._seconds
        self._continue()

    def hurry(self) -> None:
        """Close at once what is left."""
        if self.is_draining and not self.is_over:
            self._close(len(self._waiting))
            self._continue()

    async def wait(self) -> None:
        """Wait until it is over."""
        await self._over.wait()

    def _continue(self) -> None:
        """Close what is due, and go on later if more is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elapsed = self.elapsed
        due = len(self._waiting)
        if elapsed < self._seconds:
            due = min(due, int(elapsed * self._rate) - self._closed_since)
        self._closed_since += due
        self._close(due)
        if not self._waiting or not self._connections:
            self._waiting.clear()
            self._over.set()
            self.over_at = self._loop.time()
            return
        self._timer = self._loop.call_later(CLOSE_INTERVAL, self._continue)

    def _close(self, number: int) -> None:
        for _ in range(number):
            connection = self._waiting.popleft()
            if connection in self._connections:
                connection.close(DisconnectShutdown())
