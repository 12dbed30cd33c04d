"""Blocked users, as a node knows them: their connections are closed, and new ones refused.

Redis keeps the list of the service, and each node has a copy of it in memory, so that no client
waits for Redis, and a user stays blocked while Redis is away.

    start ──► the list is read ──► every INTERVAL: has its version changed? ──yes──► it is read
                                                 ▲
    control message: a change ───────────────────┘ at once here, and the list is read again soon

A control message may be lost, late, or older than the list. Reading the list makes up for all of
these. What control messages change while it is read counts on top of it. If Redis has lost the
list, nodes write back what they know.

Without a cluster the copy is the list.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from realtime.engine.nodes import MAX_BLOCKED, Cluster
from realtime.errors import DisconnectForced, EngineUnavailable, LimitExceeded
from realtime.metrics import Outage
from realtime.node.hub import Hub
from realtime.protocol.messages import UserID
from realtime.timers import Timers

logger = logging.getLogger("realtime.node")

INTERVAL = 5.0
"""Seconds after which a node that missed a change learns of it."""


class Blocks:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self,
        hub: Hub,
        cluster: Cluster | None,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        outage: Outage,
    ) -> None:
        self._hub = hub
        self._shared = None if cluster is None else cluster.blocks
        self._timers = timers
        self._outage = outage
        self._timer = timers.timer(lambda: spawn(self.check()))
        self._ends: dict[UserID, float] = {}
        """User → when the block ends, Unix seconds."""
        self._version: str | None = None
        """Of the list that was read; None if control messages have changed the copy since."""
        self._is_checking = False
        self._changed: dict[UserID, float | None] | None = None
        """What control messages change while the list is read, None for an end; otherwise None."""

    def has(self, user: UserID) -> bool:
        """Return whether a user is blocked."""
        end = self._ends.get(user)
        return end is not None and end > time.time()

    def current(self) -> Mapping[UserID, float]:
        """Return the users who are blocked, and when that ends, Unix seconds."""
        now = time.time()
        return {user: end for user, end in self._ends.items() if end > now}

    def check_room(self, user: UserID) -> None:
        """Check that one more user can be blocked here.

        Raises:
            LimitExceeded: `MAX_BLOCKED` others are.
        """
        if user not in self._ends and len(self._ends) >= MAX_BLOCKED:
            self._ends = dict(self.current())
            if len(self._ends) >= MAX_BLOCKED:
                raise LimitExceeded

    # changes

    def add(self, user: UserID, end: float) -> None:
        """Block a user, and close the user's connections."""
        if end > time.time():
            self._change(user, end)
            self._close(user)

    def remove(self, user: UserID) -> None:
        """Unblock a user."""
        self._change(user, None)

    def _change(self, user: UserID, end: float | None) -> None:
        self._version = None
        if self._changed is not None:
            self._changed[user] = end
        if end is None:
            self._ends.pop(user, None)
        else:
            self._ends[user] = end

    def _close(self, user: UserID) -> None:
        for client in self._hub.connections(user):
            client.close(DisconnectForced())

    # the list of the service

    async def load(self) -> None:
        """Read the list, before the node serves.

        Raises:
            EngineUnavailable: Redis did not answer, or refused.
        """
        if self._shared is not None:
            await self._read()

    def start(self) -> None:
        """Look for changes from now on; at once, because no message has told of them yet."""
        if self._shared is not None:
            self._timer.set(self._timers.now())

    async def check(self) -> None:
        """Read the list if it has changed. Never raises."""
        if self._shared is None or self._is_checking:
            return
        self._is_checking = True
        try:
            if await self._shared.version() != self._version:
                await self._read()
        except EngineUnavailable as error:
            if self._outage.begins():
                logger.warning("Could not look for blocked users, will retry: %s", error)
        finally:
            self._is_checking = False
            self._timer.set(self._timers.now() + INTERVAL)

    async def _read(self) -> None:
        assert self._shared is not None
        self._changed = {}
        try:
            version, ends = await self._shared.read()
            if not version and (own := self.current()):
                await self._shared.add(own)
                return  # the next look finds what the nodes have written
            changed = self._changed
        finally:
            self._changed = None
        new = {**ends, **{user: end for user, end in changed.items() if end is not None}}
        for user, end in changed.items():
            if end is None:
                new.pop(user, None)
        added = new.keys() - self._ends.keys()
        self._ends = new
        self._version = None if changed else version
        for user in added:
            self._close(user)
