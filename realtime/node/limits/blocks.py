"""Blocked users, as a node knows them: their connections are closed, and new ones refused.

The engine keeps the list of the service, and each node has a copy of it in memory, so that no
client waits for the engine, and a user stays blocked while the engine is away.

    start ──► the list is read ──► every INTERVAL: has its version changed? ──yes──► it is read
                                                 ▲
    control message: a change ───────────────────┘ at once here, and the list is read again soon

A control message may be lost, late, or older than the list. Reading the list makes up for all of
these. What control messages change while it is read counts on top of it.

The engine may lose the list, or its last changes: it comes back empty, with an old dump, or as a
replica that had not got them. The version tells: it is that of another list, or lower than the
newest one that the node knows. Then nodes write back what they know and the list lacks. A user who
was unblocked at that time may be blocked again: better that than to let in a user who is blocked.

Without a cluster the copy is the list.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from realtime.cluster.context import Context
from realtime.engine.limits import MAX_BLOCKED, NO_LIST, BlockList, ListVersion, SharedLimits
from realtime.errors import DisconnectForced, LimitExceeded
from realtime.node.hub import Hub
from realtime.node.observer import Observer
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.node")

INTERVAL = 5.0
"""Seconds after which a node that missed a change learns of it."""


class Blocks:
    """See the module. Belongs to the event loop of its node."""

    def __init__(
        self, context: Context, hub: Hub, limits: SharedLimits | None, observer: Observer
    ) -> None:
        self._timers, self._context = context.timers, context
        self._hub = hub
        self._shared = limits
        self._observer = observer
        self._timer = context.timers.timer(lambda: context.spawn(self.check()))
        self._ends: dict[UserID, float] = {}
        """User → when the block ends, Unix seconds."""
        self._version: ListVersion | None = None
        """Of the list that was read; None if control messages have changed the copy since."""
        self._newest = NO_LIST
        """The newest version of which the node has read or heard."""
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

    def add(self, user: UserID, end: float, version: ListVersion = NO_LIST) -> None:
        """Block a user, and close the user's connections, also if the block is over.

        Args:
            user: who is blocked.
            end: Unix seconds.
            version: of the list with this block.
        """
        if end > time.time():
            self._change(user, end, version)
            self._observer.happened("blocked", user, subject=user)
        # a node that was frozen, or whose clock is ahead, may hear of it too late
        self._close(user)

    def remove(self, user: UserID, version: ListVersion = NO_LIST) -> None:
        """Unblock a user. `version`: of the list without the block."""
        if self.has(user):
            self._observer.happened("unblocked", user, subject=user)
        self._change(user, None, version)

    def _change(self, user: UserID, end: float | None, version: ListVersion) -> None:
        self._version = None
        self._newest = max(self._newest, version)
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
            EngineUnavailable: The engine did not answer, or refused.
        """
        if self._shared is not None:
            self._is_checking = True  # the engine may come back meanwhile, which has nodes check
            try:
                await self._read()
            finally:
                self._is_checking = False

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
            with self._context.logged(
                logger.warning, "Could not look for blocked users, will retry: %s"
            ):
                await self._read(self._version)
        finally:
            self._is_checking = False
            self._timer.set(self._timers.now() + INTERVAL)

    async def _read(self, known: ListVersion | None = None) -> None:
        assert self._shared is not None
        self._changed = {}
        try:
            listed = await self._shared.blocked(known)
            if listed is not None and (lost := self._lost(listed)):
                logger.warning("The engine lost blocked users, and gets them back: %d", len(lost))
                await self._shared.block(lost)
                listed = await self._shared.blocked()
            changed = self._changed
        finally:
            self._changed = None
        if listed is None:
            return
        new = {**listed.ends, **{user: end for user, end in changed.items() if end is not None}}
        for user, end in changed.items():
            if end is None:
                new.pop(user, None)
        self._ends = new
        self._version = None
        if not changed:
            self._version = self._newest = listed.version
        # also those who were blocked before: a block that was over may have let them in
        for user in self.current():
            self._close(user)

    def _lost(self, listed: BlockList) -> dict[UserID, float]:
        """Return the blocks that the engine had, and the list that was read has not, or not as
        long."""
        if not self._newest.made or (
            listed.version.made == self._newest.made and listed.version >= self._newest
        ):
            return {}
        own, ends = self.current().items(), listed.ends
        return {user: end for user, end in own if end > ends.get(user, 0.0)}
