"""Connections of a user over all nodes, for the option `user_connection_limit`.

No connect waits for the engine: a node refuses by its own count. About once a second it tells the
engine how many connections its users have, and learns how many of them have a place. The engine
gives places in one step, so of two nodes that ask for the last one, one gets it.

    connect, close ──► changed ──► every INTERVAL: counts to the engine
                                     │        ▲
        all have a place ◄───────────┤        │ asked again every INTERVAL
                                     └──► the user is *beyond* the limit
                                              │ for PATIENCE, and twice in a row
                                              ▼
                                 the newest connections without a place are closed

Patience, because client libraries do not come back after this disconnect. Two things are no reason
for it: a node that died has its places until its heartbeats are overdue, and a page that is loaded
anew may have its old connection at another node, which tells of its end within INTERVAL.

A user stays beyond until the engine has room, or no connection was too many for REMEMBERED, so
another attempt soon after has no patience of its own.

While the engine is away, each node goes on by its own counts, and patience begins anew after that.
A node whose places the engine has lost, or may have lost, tells all of its counts again.

Memory: a number for each user with connections here, and an entry for each that is beyond.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from realtime.cluster.context import Context
from realtime.cluster.peers import HEARTBEAT_INTERVAL, HEARTBEAT_LIFETIME
from realtime.engine.limits import SharedLimits
from realtime.errors import DisconnectConnectionLimit, EngineUnavailable
from realtime.node.hub import Hub
from realtime.protocol.messages import UserID

logger = logging.getLogger("realtime.node")

INTERVAL = 1.0
"""Seconds from one look at the counts to the next."""
PATIENCE = HEARTBEAT_LIFETIME + 5.0
"""Seconds for which a user may be beyond the limit: longer than places of a dead node last."""
REMEMBERED = 60.0
"""Seconds for which a user without a connection too many counts as beyond, if there is no room."""
USERS_PER_CALL = 200
"""Users in one call. Redis runs nothing else meanwhile."""


class _Beyond:
    """A user who has, or had, connections without a place, while the service has no room."""

    __slots__ = ("excess", "seen", "since")

    def __init__(self, now: float) -> None:
        self.since = now
        self.seen = now
        """When there was a connection without a place, last."""
        self.excess = 0
        """Connections that had no place at the last look, and stayed."""


class UserConnections:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, context: Context, hub: Hub, limits: SharedLimits) -> None:
        self._uid, self._context = context.uid, context
        self._timers = context.timers
        self._hub = hub
        self._limit = context.config.user_connection_limit
        self._shared = limits
        self._timer = context.timers.timer(self._look)
        self._changed: set[UserID] = set()
        """Users with another count than the engine knows."""
        self._places: dict[UserID, int] = {}
        """What the engine gave to users here."""
        self._beyond: dict[UserID, _Beyond] = {}
        self._is_known = True
        """Whether the engine has these places, as far as the node knows."""
        self._clears = False
        """Whether the engine had others, which have to go."""
        self._is_telling = False
        self._told_at = 0.0
        """Monotonic seconds."""

    def start(self) -> None:
        """Tell other nodes of connections from now on."""
        self._timer.set(self._timers.now() + INTERVAL)

    def changed(self, user: UserID) -> None:
        """Note that a user has more or fewer connections here."""
        self._changed.add(user)

    def forget(self) -> None:
        """Tell everything again: the engine may have lost it."""
        self._is_known = False

    def _look(self) -> None:
        now = self._timers.now()
        self._timer.set(now + INTERVAL)
        is_due = self._changed or self._beyond or not self._is_known
        # without news only the lifetime of the places is renewed
        if not self._is_telling and (is_due or now - self._told_at >= HEARTBEAT_INTERVAL):
            self._is_telling = True
            self._context.spawn(self._tell())

    async def _tell(self) -> None:
        """Tell the engine the counts that it does not know, and learn of places. Never raises."""
        users = self._changed | self._beyond.keys()
        if not self._is_known:
            users |= self._places.keys() | self._hub.users.keys()
            users.discard("")  # anonymous clients
        self._is_known, self._changed = True, set()
        clears, self._clears = self._clears, False
        try:
            listed = list(users)
            known = await self._ask(listed[:USERS_PER_CALL], clears=clears)
            for start in range(USERS_PER_CALL, len(listed), USERS_PER_CALL):
                known = await self._ask(listed[start : start + USERS_PER_CALL])
        except EngineUnavailable as error:
            self._is_known = False
            self._beyond.clear()
            if self._context.outage.begins():
                logger.warning("Could not count the connections of users, will retry: %s", error)
        else:
            self._told_at = self._timers.now()
            if known != len(self._places):
                self._is_known, self._clears = False, True
        finally:
            self._is_telling = False

    async def _ask(self, users: Sequence[UserID], *, clears: bool = False) -> int:
        """Ask for places, and return how many users have places here."""
        counts = {user: len(self._hub.connections(user)) for user in users}
        answer = await self._shared.place_connections(self._uid, counts, self._limit, clears=clears)
        for (user, count), here, elsewhere in zip(
            counts.items(), answer.here, answer.elsewhere, strict=True
        ):
            if here:
                self._places[user] = here
            else:
                self._places.pop(user, None)
            self._judge(user, count - here, has_room=here + elsewhere < self._limit)
        return answer.users

    def _judge(self, user: UserID, excess: int, *, has_room: bool) -> None:
        """Decide about connections without a place. `excess`: their number."""
        now, beyond = self._timers.now(), self._beyond.get(user)
        if excess:
            if beyond is None:
                beyond = self._beyond[user] = _Beyond(now)
            closing = min(excess, beyond.excess) if now - beyond.since >= PATIENCE else 0
            beyond.seen, beyond.excess = now, excess - closing
            self._close(user, closing)
        elif beyond is not None:
            beyond.excess = 0
            if has_room or now - beyond.seen >= REMEMBERED:
                del self._beyond[user]

    def _close(self, user: UserID, number: int) -> None:
        """Close the newest connections of a user, as far as they have no place."""
        connections = self._hub.connections(user)
        first = max(self._places.get(user, 0), len(connections) - number)
        for client in connections[first:]:
            client.close(DisconnectConnectionLimit())
