"""User joins: one join and one leave for each user of a channel, however many connections it has.

For channels with `join_leave` "user". States of a user in a channel, at this node:

    absent ── enter ──► present ── the last exit ──► held ── leave_delay is over ──► absent
                           ▲                          │
                           └────────── enter ─────────┘

Present and held users are listed in the engine, by channel. It reports which node lists a user
first, and which one last; that node publishes the join or the leave. So a user who returns within
`leave_delay`, at whichever node, neither leaves nor joins.

A join has the connection that came first. A leave has the user alone: no connection is left, and
for the users of a node that died nothing else is known.
"""

from __future__ import annotations

import logging

from realtime.cluster.context import Context
from realtime.engine.base import Broker, Joined, Left, Notice
from realtime.engine.lists import Kind, NodeLists, is_listable, pair, parts_of
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo
from realtime.timers import Timer

logger = logging.getLogger("realtime.node")


class _Joined:
    """A user in a channel, present or held."""

    __slots__ = ("clients", "timer")

    def __init__(self) -> None:
        self.clients: dict[ClientID, ClientInfo] = {}
        self.timer: Timer | None = None
        """Ends the hold; None while the user is present."""


class UserJoins:
    """See the module. Belongs to the event loop of its node."""

    def __init__(self, context: Context, broker: Broker, lists: NodeLists) -> None:
        self._context = context
        self._broker = broker
        self._lists = lists
        self._users: dict[str, _Joined] = {}
        """Name of a user in a channel → the connections."""

    def enter(self, channel: ChannelName, info: ClientInfo) -> None:
        """Count a connection in a channel; the first one of its user is a join."""
        name = pair(channel, info.user)
        joined = self._users.get(name)
        if joined is None:
            joined = self._users[name] = _Joined()
        elif joined.timer is not None:
            joined.timer.cancel()
            joined.timer = None
        joined.clients[info.client] = info
        self._lists.add(Kind.CHANNEL_USERS, name)

    def exit(self, channel: ChannelName, info: ClientInfo, delay: float) -> None:
        """Count a connection no longer; the last one of its user is a leave, after `delay` seconds.

        A connection that was not counted is ignored.
        """
        name = pair(channel, info.user)
        joined = self._users.get(name)
        if joined is None or joined.clients.pop(info.client, None) is None or joined.clients:
            return
        if delay > 0:
            joined.timer = self._context.timers.timer(lambda: self._gone(name))
            joined.timer.set(self._context.timers.now() + delay)
        else:
            self._gone(name)

    def _gone(self, name: str) -> None:
        del self._users[name]
        self._lists.discard(Kind.CHANNEL_USERS, name)

    def held_seconds(self) -> float | None:
        """Return for how long users are held; then another node, if this one stops, publishes the
        leaves of those who did not return. None: no user is held."""
        now = self._context.timers.now()
        left = [
            joined.timer.deadline - now
            for joined in self._users.values()
            if joined.timer is not None and joined.timer.deadline is not None
        ]
        return max(0.0, *left) if left else None

    # from the engine, or from a sweep

    def on_first(self, name: str) -> None:
        """Publish the join of a user."""
        channel, user = parts_of(name)
        joined = self._users.get(name)
        infos = () if joined is None else joined.clients.values()
        info = next(iter(infos), ClientInfo(user, ""))  # it may have left meanwhile
        self._context.spawn(self._publish(channel, Joined(info)))

    def on_last(self, name: str) -> None:
        """Publish the leave of a user. A name that no node wrote is ignored."""
        try:
            channel, user = parts_of(name)
        except ValueError:
            return
        self._context.spawn(self._publish(channel, Left(ClientInfo(user, ""))))

    async def _publish(self, channel: ChannelName, notice: Notice) -> None:
        with self._context.logged(
            logger.error, "Could not publish a join or leave, as others for now: %s"
        ):
            await self._broker.notify(channel, notice)


def is_one(info: ClientInfo) -> bool:
    """Return whether connections like this are counted by their user: anonymous ones have none."""
    return is_listable(info.user)
