"""LoopBus: connections, mailboxes and groups on one event loop.

A mailbox receives what is sent to its name and to the groups that it joined. Its name, and each
group that has a mailbox here, is a Redis channel that this loop subscribes to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from realtime.engine.redis.servers import Handlers, OnShards, Servers
from realtime.redis.hosts import Timeouts
from realtime.redis.master import OnMoved
from realtime.redis.pubsub import PubSub

GIVEN_UP_LIFETIME = 60.0
"""Seconds for which a mailbox that was closed stays in its groups. A channel of a layer may be read
again, and finds them as it left them; the channel of a consumer that ended never is."""


Mailbox = Callable[[bytes], None]
"""Takes a message, still encoded. Must not block."""


class _Membership:
    """A mailbox in a group."""

    __slots__ = ("confirmed", "joining", "timer")

    def __init__(self) -> None:
        self.confirmed = False
        """Whether a call of `join` has returned."""
        self.joining = 0
        """Calls of `join` that wait."""
        self.timer: asyncio.TimerHandle | None = None
        """Ends it."""


class LoopBus:
    """See the module. Belongs to the event loop on which it is made."""

    def __init__(self, servers: Servers, timeouts: Timeouts, on_moved: OnMoved) -> None:
        """
        Args:
            servers: the shards.
            on_moved: called when Sentinels name another master.
        """
        self._on_moved = on_moved
        self._servers = servers
        self._timeouts = timeouts
        self._shard_of = servers.shard_of
        self.mailboxes: dict[str, Mailbox] = {}
        """Name → mailbox."""
        self._groups: dict[str, dict[str, _Membership]] = {}
        """Redis channel of a group → names of its mailboxes."""
        self._groups_of: dict[str, set[str]] = {}
        """Name of a mailbox → Redis channels of its groups."""
        self._given_up: dict[str, asyncio.TimerHandle] = {}
        """Name of a mailbox that was closed → the end of its memberships."""
        self._watchers: dict[str, tuple[OnShards, OnShards]] = {}
        """Name of a mailbox → called when messages may be missed, and when no longer."""
        self._connect()

    def _connect(self) -> None:
        handlers = Handlers(self._deliver, self._lost, self._restored)
        self._opened = self._servers.open(self._timeouts, handlers, self._on_moved)
        self.connections = self._opened.commands
        """To each shard, for commands."""
        self.confirming = self._opened.confirming
        """To each shard, for messages that wait for replicas."""

    def _pubsub_of(self, channel: str) -> PubSub:
        return self._opened.pubsub[self._shard_of(channel)]

    # mailboxes

    async def open_mailbox(
        self, name: str, mailbox: Mailbox, watcher: tuple[OnShards, OnShards] | None = None
    ) -> None:
        """Receive messages in a mailbox.

        Args:
            watcher: called with shards when messages of their groups may be missed from now on,
                and when all of them are received again.

        Raises:
            EngineUnavailable: Redis did not confirm it; the mailbox is not open.
        """
        self.mailboxes[name] = mailbox
        self._keep_groups(name)
        if watcher is not None:
            self._watchers[name] = watcher
        try:
            await self._pubsub_of(name).subscribe(name)
        except BaseException:
            self.close_mailbox(name)
            raise

    def close_mailbox(self, name: str) -> None:
        """Receive nothing more in a mailbox. Nothing happens when it is not open.

        It leaves its groups after GIVEN_UP_LIFETIME, unless it is opened again.
        """
        self._watchers.pop(name, None)
        if self.mailboxes.pop(name, None) is None:
            return
        self._pubsub_of(name).unsubscribe(name)
        if name in self._groups_of:
            loop = asyncio.get_running_loop()
            self._given_up[name] = loop.call_later(GIVEN_UP_LIFETIME, self.leave_all, name)

    def _keep_groups(self, name: str) -> None:
        timer = self._given_up.pop(name, None)
        if timer is not None:
            timer.cancel()

    async def join(self, group_channel: str, name: str, lifetime: float | None = None) -> None:
        """Receive what is sent to a group in a mailbox, too.

        Args:
            group_channel: the Redis channel of the group.
            name: the name of the mailbox.
            lifetime: seconds after which the mailbox leaves the group; None for never.

        Raises:
            EngineUnavailable: Redis did not confirm it; the mailbox has not joined, unless another
                call succeeded or still waits.
        """
        membership = self._groups.setdefault(group_channel, {}).setdefault(name, _Membership())
        self._groups_of.setdefault(name, set()).add(group_channel)
        membership.joining += 1
        try:
            await self._pubsub_of(group_channel).subscribe(group_channel)
            membership.confirmed = True
        finally:
            membership.joining -= 1
            if self._groups.get(group_channel, {}).get(name) is membership:  # it did not leave
                if not (membership.confirmed or membership.joining):
                    self.leave(group_channel, name)
                elif membership.confirmed and lifetime is not None:
                    self._end_after(lifetime, membership, group_channel, name)

    def _end_after(
        self, lifetime: float, membership: _Membership, group_channel: str, name: str
    ) -> None:
        if membership.timer is not None:
            membership.timer.cancel()
        loop = asyncio.get_running_loop()
        membership.timer = loop.call_later(lifetime, self.leave, group_channel, name)

    def leave(self, group_channel: str, name: str) -> None:
        """Receive it no longer. Nothing happens when the mailbox did not join."""
        members = self._groups.get(group_channel)
        if members is None or name not in members:
            return
        timer = members.pop(name).timer
        if timer is not None:
            timer.cancel()
        groups = self._groups_of[name]
        groups.discard(group_channel)
        if not groups:
            del self._groups_of[name]
            self._keep_groups(name)
        if not members:
            del self._groups[group_channel]
            self._pubsub_of(group_channel).unsubscribe(group_channel)

    def leave_all(self, name: str) -> None:
        """Leave every group that a mailbox joined."""
        for group_channel in list(self._groups_of.get(name, ())):
            self.leave(group_channel, name)

    async def flush(self) -> None:
        """Close everything; what is used afterwards is opened anew."""
        self.mailboxes.clear()
        opened = self._opened
        self._connect()
        # in the new ones: calls that wait to join fail when the old ones are closed
        for name in list(self._groups_of):
            self.leave_all(name)
        self._watchers.clear()
        await opened.close()

    # called by pub/sub

    def _deliver(self, channel: str, data: bytes) -> None:
        mailbox = self.mailboxes.get(channel)
        if mailbox is not None:
            mailbox(data)
            return
        for name in self._groups.get(channel, ()):
            mailbox = self.mailboxes.get(name)
            if mailbox is not None:
                mailbox(data)

    def _lost(self, shards: Collection[int]) -> None:
        for on_lost, _ in self._watchers.values():
            on_lost(shards)

    def _restored(self, shards: Collection[int]) -> None:
        for _, on_restored in self._watchers.values():
            on_restored(shards)
