"""The contract of an engine: where streams and presence live, and how nodes reach each other.

An engine has these parts. Each is small enough to be implemented alone:

    Broker     channels: publish, keep streams, deliver to the nodes that subscribed
    Presence   the clients in each channel
    Cluster    the nodes, see `nodes`; None where the service is one process
    Lists      channels and users at each node, see `lists`
    SharedLimits
               what a user may do over all nodes, see `limits`; None where each node counts alone
    SeenUsers   when users went offline, see `seen`; None where that is not known
    Maps       the entries of maps, see `maps`; None where there are none

A node takes an `Engine`: all of it, with delivery to a `Receiver`. A process that serves no
clients takes a `Store`: the same parts without delivery. Its coroutines may block instead of
suspending, so that they also work in a thread without an event loop.

What every method can rely on: arguments are valid. Names are those of channels, texts have a
form in UTF-8, options allow what is asked for.

What every caller can rely on: a method raises `EngineUnavailable` and nothing else. If it is a
`NoReply`, the call may have taken effect anyway, when only its answer was lost.

`tests/engine` holds every implementation to this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from realtime.config.options import ChannelOptions
from realtime.engine.limits import SharedLimits
from realtime.engine.lists import Kind, Lists, NodeLists
from realtime.engine.maps import KeyMode, Maps, Refusal
from realtime.engine.nodes import Cluster
from realtime.engine.once import Once
from realtime.engine.seen import SeenUsers
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)

B = TypeVar("B", bound="Streams", covariant=True)
L = TypeVar("L", bound=Lists, covariant=True)


class History(NamedTuple):
    """A stream, read at one moment.

    publications: those that were asked for and are still kept, without a gap: oldest first, or
        newest first where they were read in reverse.
    position: the top of the stream; its offset is 0 before the first publication.
    top_uid: the UID of the publication at the top; "" where it is unknown.
    previous_uid: that of the publication before the first of `publications`, the same. "" where
        they were read in reverse.

    UIDs show whether a stream that was counted on from an older position is still the same.
    """

    publications: tuple[Publication, ...]
    position: StreamPosition
    top_uid: str = ""
    previous_uid: str = ""


class Joined(NamedTuple):
    """A client joined a channel."""

    info: ClientInfo


class Left(NamedTuple):
    """A client left a channel."""

    info: ClientInfo


Notice: TypeAlias = Joined | Left
"""What subscribers of a channel learn beside its publications."""

Affects: TypeAlias = Callable[[ChannelName], bool]
"""Tells whether a channel is affected, for example by the loss of one shard."""


class Receiver(Protocol):
    """A node, as its engine sees it. No method blocks or raises."""

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        """Deliver a publication. `position`: its place in the stream, None without history."""

    def on_advance(self, channel: ChannelName, position: StreamPosition) -> None:
        """Note that a stream reaches up to a position: the node reads what it has not got.

        An engine calls this in place of `on_publication` where it knows the position alone.
        """

    def on_notice(self, channel: ChannelName, notice: Notice) -> None:
        """Deliver a join or leave. The client may be at any node."""

    def on_first(self, kind: Kind, name: str) -> None:
        """This node lists a name that no other node lists, such as an occupied channel."""

    def on_last(self, kind: Kind, name: str) -> None:
        """This node lists a name no longer, and no other one does: such as a vacated channel."""

    def on_interrupted(self, affects: Affects) -> None:
        """Delivery to the affected channels is interrupted until `on_resumed`."""

    def on_resumed(self, affects: Affects) -> None:
        """Delivery to the affected channels works again; what was published meanwhile is lost."""


class Outgoing(Struct, frozen=True, gc=False):
    """A publication on its way into a channel."""

    channel: ChannelName
    publication: Publication
    """Its `offset` and `time` are ignored. With a key it is a change of a map, and `expect` and
    `version` are asked of the last change of that key; `expect` 0: there is no entry."""
    options: ChannelOptions
    once: Once | None = None
    """Its idempotency key, if it has one."""
    version: Version | None = None
    """Only in channels with history: it is published if this is newer than the last version in the
    channel, or of another run."""
    expect: StreamPosition | int | None = None
    """Only in channels with history: it is published if this is the top, with its epoch or the
    offset alone. Asked after `once`, before `version`: a repetition has its first answer, and what
    is not published leaves no version."""
    after: Once | None = None
    """Only with `once`: the key of the publication before it. If the engine refused that one, it
    refuses this one, too, so that the two keep their order."""
    key_mode: KeyMode = ""
    """Only with a key."""
    ttl: int | None = None
    """Only with a key: seconds for which the entry lives; 0: forever, None: as the options say."""

    @property
    def is_asked(self) -> bool:
        """Whether the engine decides about it, or keeps it: it is not only sent."""
        is_kept = self.options.keeps_history or self.publication.key != ""
        return is_kept or self.once is not None


class Published(Struct, frozen=True, gc=False):
    """What became of a publication."""

    position: StreamPosition | None = None
    """Its position, None without history. If its key was used, that of the publication that used
    it; if the top is not the expected one, or its version not newer, the top position."""
    kept: bool = True
    """False: its key was used, the top is another or its version is not newer, so nothing was kept
    or sent."""
    reason: Refusal = ""
    """Only of a change of a map: why it was not made."""
    current: Publication | None = None
    """Only of a change of a map that was not made: the entry of the key at that moment."""


class Streams(Protocol):
    """The half of a broker that needs no node: publish, and read the streams of channels."""

    async def publish(self, outgoing: Outgoing) -> Published:
        """Publish to every node that is subscribed to a channel.

        In a channel with history this is one atomic step: the publication gets the next offset,
        is kept, and is sent. A caller that reads history afterwards finds it there, and nodes
        receive it with the offset that it has in history.

        The next call may begin before the one before has ended: publications into one channel keep
        the order in which the calls began. In a thread without an event loop there is no next call.

        The same idempotency key in the same channel publishes once, whichever processes ask.
        Only a third-party layer sends in a second step: what it loses, a repetition does not send.
        """

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        """Publish several, in as few round trips as possible.

        Publications into one channel keep their order. One that fails does not keep the others
        from being published.

        Returns:
            What became of each, or why it was not published.
        """

    async def notify(self, channel: ChannelName, notice: Notice) -> None:
        """Send a join or leave to every node that is subscribed to a channel. It is not kept."""

    async def history(
        self,
        channel: ChannelName,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        """Read kept publications, with the times at which they were kept, and the top position.

        All are read at one moment. A channel without publications has offset 0 and the epoch
        that its first publication will have. Offset and epoch outlive the publications.

        Args:
            start: the offset to begin at, any integer; None: the oldest one, or the newest one in
                reverse.
            limit: publications to read at most, 0 or more; None: all.
            reverse: begin at `start` and go back to older ones.
        """

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        """Return the top position of each channel, in as few round trips as possible.

        It is the one that `history` would return. Not for each client that names a channel: an
        engine that forgets the epochs of channels without publications keeps them longer after this
        than after other reads.

        Args:
            at: Unix ms; return the positions that the channels had then, by the clock that gives
                publications their times. If history does not reach back that far, the offset is 0.
        """

    async def remove_history(self, channel: ChannelName) -> None:
        """Remove the kept publications; the position stays."""

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        """Begin a new epoch of a stream that lost publications in `epoch`.

        Several nodes may notice the same loss: nothing happens when the stream has another epoch
        already.
        """


class Broker(Streams, Protocol):
    """Channels: publishing, streams, and delivery to the receiver of this node."""

    def shard(self, channel: ChannelName) -> int:
        """Return the number of the server that keeps a channel, 0 if there is only one.

        While a server cannot be reached, none of its streams can be read.
        """

    async def subscribe(self, channel: ChannelName) -> None:
        """Deliver what is published in a channel to the receiver, until `unsubscribe`.

        Returns when no later publication can be missed. Calls of this method and `unsubscribe`
        for one channel take effect in the order in which they begin. When it fails, the node is
        not subscribed.
        """

    async def unsubscribe(self, channel: ChannelName) -> None:
        """Stop the delivery of what is published in a channel.

        When it fails, publications may still be delivered.
        """


class Presence(Protocol):
    """The clients in each channel, over all nodes. Entries expire unless they are refreshed."""

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        """Add clients to a channel, or refresh their entries, for `lifetime` seconds."""

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        """Remove a client from a channel. An absent client is ignored."""

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        """Return the clients in a channel. Expired entries are left out."""


class EngineParts(Generic[B, L]):
    """The parts of an engine."""

    broker: B
    presence: Presence
    lists: L
    """What there is at the nodes; where there is no cluster, at this one."""
    cluster: Cluster | None = None
    """None: the service has one process."""
    limits: SharedLimits | None = None
    seen: SeenUsers | None = None
    maps: Maps | None = None


Store: TypeAlias = EngineParts[Streams, Lists]
"""An engine, for a process that serves no clients."""


class Engine(EngineParts[Broker, NodeLists], ABC):
    """An engine, for a node. All methods belong to the node's event loop."""

    @abstractmethod
    async def start(self, receiver: Receiver, uid: str) -> None:
        """Begin to deliver to a receiver. When it fails, the engine is stopped.

        Args:
            receiver: the node.
            uid: the ID of the node.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Stop the delivery and release everything, within seconds whatever hangs."""
