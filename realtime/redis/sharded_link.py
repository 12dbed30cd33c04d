"""ShardedLink: a link for sharded publish/subscribe with one server of a cluster, shared by slots.

Each slot has a part of the link, which `pubsub.PubSub` takes for a link of its own. A part is lost
with the link; and alone when the server says that its slot belongs to another one:

- SSUBSCRIBE is refused with MOVED, or because the cluster has no server for the slot,
- an SUNSUBSCRIBE that no command asked for: so a server tells that it gave the slot away.

A part that leaves a link unsubscribes from its names there. A replica takes subscribers, too: from
two servers, each message would come twice. So a link delivers only what is subscribed to: names
that the server has confirmed, and that belong to a part.

Names in one SSUBSCRIBE have one slot, because a server refuses others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from realtime.redis.commands import Reply
from realtime.redis.hosts import Host, Timeouts
from realtime.redis.pubsub_link import Confirmation, PubSubLink
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
        self.names: set[str] = set()
        """Names whose messages are delivered."""

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[PubSubLink], None]
    ) -> None:
        names = self.names

        def receive_subscribed(name: str, data: bytes) -> None:
            if name in names:
                receive(name, data)

        super().start(receive_subscribed, on_lost)

    def _on_reply(self, reply: Reply, error: str | None) -> None:
        if type(reply) is list:
            name = reply[1].decode()
            if reply[0] == b"ssubscribe" and slot_of(name) in self.parts:
                self.names.add(name)
            elif reply[0] == b"sunsubscribe" and self._is_unsubscribed(name):
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
            part = self.parts.get(slot_of(names[0]))
            if part is not None:
                (part.dropped if error.startswith("MOVED") else part.abort)(error)
            return
        if error is not None and error.startswith("ERR unknown command"):
            error = f"{error.partition(',')[0]} {TOO_OLD}"
        super()._on_reply(reply, error)

    def _is_unsubscribed(self, name: str) -> bool:
        """Return whether the server unsubscribed this link from a name without a command."""
        self.names.discard(name)
        expected = self._expected[0] if self._expected else None
        if expected is not None and not expected.names and expected.unsubscribed == name:
            return False
        part = self.parts.get(slot_of(name))
        if part is not None:
            if self.slots is not None:
                self.slots.forget(slot_of(name))
            part.dropped("a slot moved to another server")
        return True

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


class SlotPart:
    """The part of a link for one slot, with the methods of a `PubSubLink`."""

    def __init__(self, link: ShardedLink, slot: int) -> None:
        self.lost: str | None = link.lost
        self.link = link
        self._slot = slot
        self._names: dict[str, None] = {}
        """Names that are subscribed to here."""
        self._on_lost: Callable[[SlotPart], None] | None = None

    def start(
        self, receive: Callable[[str, bytes], None], on_lost: Callable[[SlotPart], None]
    ) -> None:
        """Belong to the link from now on. Messages go to the receiver of the link."""
        self._on_lost = on_lost
        self.link.parts[self._slot] = self

    def subscribe(self, names: Sequence[str], confirmations: Sequence[Confirmation]) -> None:
        """As `PubSubLink.subscribe`."""
        self._names.update(dict.fromkeys(names))
        self.link.subscribe(names, confirmations)

    def subscribe_all(self, wanted: Mapping[str, Confirmation]) -> list[Confirmation]:
        """As `PubSubLink.subscribe_all`."""
        self._names.update(dict.fromkeys(wanted))
        return self.link.subscribe_all(wanted)

    def unsubscribe(self, name: str) -> None:
        """As `PubSubLink.unsubscribe`."""
        self._names.pop(name, None)
        self.link.names.discard(name)
        self.link.unsubscribe(name)

    def abort(self, reason: str) -> None:
        """Leave the link, and unsubscribe from all names. The other slots stay."""
        names = self._forget_names()
        if self.link.lost is None:
            for name in names:
                self.link.unsubscribe(name)
        self._leave(reason)

    def dropped(self, reason: str) -> None:
        """Leave the link, whose server has unsubscribed it from all names."""
        self._forget_names()
        self._leave(reason)

    def _forget_names(self) -> Collection[str]:
        names, self._names = self._names, {}
        self.link.names.difference_update(names)
        return names

    def _leave(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        if self.link.parts.get(self._slot) is self:
            del self.link.parts[self._slot]
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(self)

    async def close(self, reason: str) -> None:
        """As `dropped`. The link stays open; its owner closes it."""
        self._on_lost = None
        self.dropped(reason)
