"""ShardedLink: a link for sharded publish/subscribe with one server of a cluster, shared by slots.

Each slot has a part of the link, which `pubsub.PubSub` takes for a link of its own. A part is lost
with the link; and alone when the server says that its slot belongs to another one:

- SSUBSCRIBE is refused with MOVED, or because the cluster has no server for the slot,
- an SUNSUBSCRIBE that no command asked for: so a server tells that it gave the slot away.

Names in one SSUBSCRIBE have one slot, because a server refuses others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from realtime.redis.commands import Reply
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub_link import PubSubLink
from realtime.redis.redirects import Redirected
from realtime.redis.slot_map import SlotMap
from realtime.redis.slots import slot_of

OF_A_SLOT = ("MOVED", "CLUSTERDOWN", "TRYAGAIN", "ASK")
"""Errors that say something of a slot, and nothing of the connection."""

TOO_OLD = "(sharded pub/sub needs Redis 7 or newer, or Valkey)"


class ShardedLink(PubSubLink):
    """See the module."""

    SUBSCRIBE: ClassVar = "SSUBSCRIBE"
    UNSUBSCRIBE: ClassVar = "SUNSUBSCRIBE"
    MESSAGE: ClassVar = b"smessage"

    def __init__(self, host: Host, timeouts: Timeouts) -> None:
        super().__init__(host, timeouts)
        self.parts: dict[int, SlotPart] = {}
        """Slot → its part."""
        self.slots: SlotMap | None = None
        """Learns which slots moved."""

    def lose_parts(self, reason: str) -> None:
        """Tell every part that the link is lost."""
        for part in list(self.parts.values()):
            part.abort(reason)

    def _on_reply(self, reply: Reply, error: str | None) -> None:
        if type(reply) is list and reply[0] == b"sunsubscribe":
            expected = self._expected[0] if self._expected else None
            name = reply[1].decode()
            if expected is None or expected.names or expected.unsubscribed != name:
                slot = slot_of(name)
                if slot in self.parts and self.slots is not None:
                    self.slots.forget(slot)
                self._part_lost([name], "a slot moved to another server")
                return
        if error is not None and self._is_left_over(error):
            return
        names = self._expected[0].names
        if error is not None and names and error.startswith(OF_A_SLOT):
            expected = self._expected.popleft()
            redirected = Redirected.of(self._host, error)
            if redirected is not None and redirected.place and self.slots is not None:
                self.slots.moved(slot_of(names[0]), redirected.place)
            # confirmations outlive it: the names are subscribed to at the right server
            expected.fail(self._host.unavailable(error))
            self._part_lost(names, error)
            return
        if error is not None and error.startswith("ERR unknown command"):
            error = f"{error.partition(',')[0]} {TOO_OLD}"
        super()._on_reply(reply, error)

    def _is_left_over(self, error: str) -> bool:
        """Return whether an error is the second reply to an SUNSUBSCRIBE.

        When a slot moves, the server first says that a name is gone, which looks like the reply to
        an SUNSUBSCRIBE that is under way, and then refuses that one.
        """
        if not error.startswith(OF_A_SLOT):
            return False
        if not self._expected:
            return True
        code, _, rest = error.partition(" ")
        expected = self._expected[0]
        name = expected.names[0] if expected.names else expected.unsubscribed
        return code == "MOVED" and rest.partition(" ")[0] != str(slot_of(name))

    def _part_lost(self, names: Sequence[str], reason: str) -> None:
        part = self.parts.get(slot_of(names[0]))
        if part is not None:
            part.abort(reason)


class SlotPart:
    """The part of a link for one slot, with the methods of a `PubSubLink`."""

    def __init__(self, link: ShardedLink, slot: int) -> None:
        self.lost: str | None = link.lost
        self.link = link
        self._slot = slot
        self._on_lost: Callable[[SlotPart], None] | None = None
        self.subscribe = link.subscribe
        self.subscribe_all = link.subscribe_all
        self.unsubscribe = link.unsubscribe

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[SlotPart], None]
    ) -> None:
        """Belong to the link from now on. Messages go to the receiver of the link."""
        self._on_lost = on_lost
        self.link.parts[self._slot] = self

    def abort(self, reason: str) -> None:
        """Leave the link. The other slots stay."""
        if self.lost is not None:
            return
        self.lost = reason
        if self.link.parts.get(self._slot) is self:
            del self.link.parts[self._slot]
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(self)

    async def close(self, reason: str) -> None:
        """As `abort`. The link stays open; its owner closes it."""
        self._on_lost = None
        self.abort(reason)
