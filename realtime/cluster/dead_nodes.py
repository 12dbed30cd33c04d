"""Sweeper: tells of what ended because a node died: its users, its channels, who was in them.

Every node tries to claim the work. The owner takes names out of the lists of dead nodes, some at a
time, and reports those that no other node lists; see `engine.lists`. It waits for the receivers of
signals before it takes more, so that none are dropped; if they do not keep up, another node may
take the work.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from itertools import count

from realtime.channel_rules import CONTROL
from realtime.cluster.context import Context
from realtime.engine.lists import Kind, Lists
from realtime.engine.nodes import Cluster
from realtime.errors import EngineUnavailable

logger = logging.getLogger("realtime.node")

CLAIM = CONTROL
"""Claims are spread by name, and all lists are where the control stream is. So a claim is answered
exactly as long as heartbeats can be."""
CLAIM_LIFETIME = 5.0
"""Seconds after which another node takes the work of one that died."""
SWEEP_INTERVAL = 2.0
"""Seconds between two looks for nodes that died."""
SETTLE_TIME = 5.0
"""Seconds without a sweep when the engine is back: all nodes look dead until their heartbeats."""
RECEIVERS_TIMEOUT = 1.0
"""Seconds in which the receivers of signals must be done with the names that were taken."""


class Sweeper:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        context: Context,
        cluster: Cluster,
        lists: Lists,
        *,
        on_last: Callable[[Kind, str], None],
        drained: Callable[[float], Awaitable[bool]],
    ) -> None:
        """
        Args:
            on_last: is called with each name that no node lists any more.
            drained: waits for the receivers of signals, these seconds at most; returns whether
                they are done.
        """
        self._uid, self._timers = context.uid, context.timers
        self._cluster = cluster
        self._lists = lists
        self._on_last = on_last
        self._drained = drained
        self._attempts = count(1)
        self._attempt = self._next_attempt()
        self._timer = self._timers.timer(lambda: context.spawn(self._run()))
        self._is_stopping = False
        self._answered_at = self._timers.now()
        self._reachable_since = self._answered_at
        """Loop time from which on the engine has answered every look."""

    def start(self) -> None:
        """Look from now on."""
        self._timer.set(self._timers.now() + SWEEP_INTERVAL)

    def stop(self) -> None:
        """Look no more. Another node does, when the claim is over."""
        self._is_stopping = True
        self._timer.cancel()

    async def _run(self) -> None:
        try:
            is_owner = await self._is_owner()
            if self._has_settled() and is_owner:
                await self.sweep()
        except EngineUnavailable as error:  # heartbeats say so, and the next look tries again
            logger.debug("Could not sweep the lists of dead nodes: %s", error)
        finally:
            self._timer.set(self._timers.now() + SWEEP_INTERVAL)

    async def _is_owner(self) -> bool:
        return await self._cluster.claim(CLAIM, self._uid, CLAIM_LIFETIME) == self._uid

    def _has_settled(self) -> bool:
        """Return whether nodes that live have sent heartbeats since the engine was away."""
        now = self._timers.now()
        if now - self._answered_at > 2 * SWEEP_INTERVAL:
            self._reachable_since = now
        self._answered_at = now
        return now - self._reachable_since >= SETTLE_TIME

    async def sweep(self) -> None:
        """Tell of the ends at nodes that died, if this node owns the work.

        Raises:
            EngineUnavailable: the engine did not answer. The next call gets what this one missed.
        """
        while not self._is_stopping and await self._is_owner():
            swept = await self._lists.sweep(self._attempt)
            self._attempt = self._next_attempt()
            if swept is None:
                return
            for name in swept.names:
                self._on_last(swept.kind, name)
            if not await self._drained(RECEIVERS_TIMEOUT):
                await self._cluster.claim(CLAIM, self._uid, 0)
                return

    def _next_attempt(self) -> str:
        return f"{self._uid}:{next(self._attempts)}"
