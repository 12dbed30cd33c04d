"""Connect queue: clients that connect take turns, so that those who are in are not kept waiting.

The event loop does everything that is ready before it looks for more. When thousands of clients
come back at once, that is seconds of work, and publications wait behind it. So a few of them go
on in each turn of the loop, in the order in which they came, and the others wait.

    quiet ──turn(): goes on at once──► PER_TURN are through ──turn(): waits──► next turn of the loop

Invariant: while clients wait, or went on in this turn, `_next_turn` is due in the next one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

PER_TURN = 64
"""Clients that go on in one turn of the loop: some ten milliseconds of work. Fewer would cost
more turns, each with a look at every socket; a quarter of it takes a sixth more CPU time."""


class ConnectQueue:
    """See the module. Belongs to an event loop."""

    __slots__ = ("_is_due", "_left", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left = PER_TURN
        """How many more may go on in this turn."""
        self._is_due = False
        self._waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    async def turn(self) -> None:
        """Wait for the turn of one client. Call it before each part of the work of connecting."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._next_turn)
        if self._left:
            self._left -= 1
            return
        waiting = self._loop.create_future()
        self._waiting[waiting] = None
        try:
            await waiting
        finally:
            self._waiting.pop(waiting, None)

    def _next_turn(self) -> None:
        left = PER_TURN
        while left and self._waiting:
            waiting, _ = self._waiting.popitem(last=False)
            if not waiting.done():  # otherwise its task was cancelled
                waiting.set_result(None)
                left -= 1
        self._is_due = left < PER_TURN
        self._left = left
        if self._is_due:
            self._loop.call_soon(self._next_turn)
