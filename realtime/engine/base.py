"""The contract of an engine: where streams and presence live, and how nodes reach each other.

An engine has three parts. Each is small enough to be implemented alone:

    Broker     channels: publish, keep streams, deliver to the nodes that subscribed
    Presence   the clients in each channel
    Cluster    the nodes: heartbeats, surveys, claims; None where the service is one process

A node takes an `Engine`: all of it, with delivery to a `Receiver`. A process that serves no
clients takes a `Store`: the same parts without delivery. Its coroutines may block instead of
suspending, so that they also work in a thread without an event loop.

What every method can rely on: arguments are valid. Names are those of channels, options allow
what is asked for.

What every caller can rely on: a method raises `EngineUnavailable` and nothing else. If it is a
`NoReply`, the call may have taken effect anyway, when only its answer was lost.

`tests/engine` holds every implementation to this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from realtime.config.options import ChannelOptions
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.errors import EngineUnavailable
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)


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


class NodeInfo(Struct, frozen=True, gc=False):
    """A node, as it describes itself. `uptime`: seconds since its start. docs/protocol.md, 6.5."""

    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_channels: int
    uptime: int


class NodeStatus(NodeInfo, frozen=True, gc=False):
    """A node with the details that operators need. `num_subs`: 0 also of an older version."""

    messages_published: int = 0
    """Publications made in its process since it started: by its clients, its API, the site."""
    messages_delivered: int = 0
    """Publications pushed to its clients since it started."""
    num_subs: int = 0
    last_seen_seconds: float = 0.0
    """Seconds since its last heartbeat."""
    alive: bool = True
    """False when heartbeats are overdue: it died, or it cannot reach Redis."""


NODES_REMEMBERED = 310.0
"""Seconds after its last heartbeat for which `Cluster.statuses` lists a node that died."""

SurveyID: TypeAlias = str

Affects: TypeAlias = Callable[[ChannelName], bool]
"""Tells whether a channel is affected, for example by the loss of one shard."""


class Receiver(Protocol):
    """A node, as its engine sees it. No method blocks or raises."""

    @property
    def uid(self) -> str:
        """The ID of the node."""
        ...

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        """Deliver a publication. `position`: its place in the stream, None without history."""
        ...

    def on_join(self, channel: ChannelName, info: ClientInfo) -> None:
        """Deliver a join. The client may be at any node."""
        ...

    def on_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        """Deliver a leave. The client may be at any node."""
        ...

    def on_occupied(self, channel: ChannelName) -> None:
        """This node got the first subscriber of a channel, counting all nodes."""
        ...

    def on_vacated(self, channel: ChannelName) -> None:
        """This node lost the last subscriber of a channel, counting all nodes."""
        ...

    def on_interrupted(self, affects: Affects) -> None:
        """Delivery to the affected channels is interrupted until `on_resumed`."""
        ...

    def on_resumed(self, affects: Affects) -> None:
        """Delivery to the affected channels works again; what was published meanwhile is lost."""
        ...


class Outgoing(NamedTuple):
    """A publication on its way into a channel. `once` and `version`: if it has them."""

    channel: ChannelName
    publication: Publication
    options: ChannelOptions
    once: Once | None = None
    version: Version | None = None


Published: TypeAlias = StreamPosition | EngineUnavailable | None
"""What became of one of several publications: its position, None without history; or why it was
not published."""


class Streams(Protocol):
    """The half of a broker that needs no node: publish, and read the streams of channels."""

    async def publish(
        self,
        channel: ChannelName,
        publication: Publication,
        options: ChannelOptions,
        once: Once | None = None,
        version: Version | None = None,
    ) -> StreamPosition | None:
        """Publish to every node that is subscribed to a channel.

        In a channel with history this is one atomic step: the publication gets the next offset,
        is kept, and is sent. A caller that reads history afterwards finds it there, and nodes
        receive it with the offset that it has in history.

        The same idempotency key in the same channel publishes once, whichever processes ask.
        Only a third-party layer sends in a second step: what it loses, a repetition does not send.

        Args:
            publication: its `offset` and `time` are ignored.
            once: its idempotency key; None: it has none.
            version: only in channels with history: it is published if this is newer than the last
                version in the channel, or of another run. None: it has none.

        Returns:
            The position of the publication; None without history. If the key was used, that of
            the publication that used it; if the version is not newer, the top position.
        """
        ...

    async def publish_many(self, publications: Sequence[Outgoing]) -> list[Published]:
        """Publish several, in as few round trips as possible.

        Publications into one channel keep their order. One that fails does not keep the others
        from being published.

        Returns:
            What became of each.
        """
        ...

    async def join(self, channel: ChannelName, info: ClientInfo) -> None:
        """Send a join to every node that is subscribed to a channel. It is not kept."""
        ...

    async def leave(self, channel: ChannelName, info: ClientInfo) -> None:
        """Send a leave to every node that is subscribed to a channel. It is not kept."""
        ...

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
        ...

    async def position(self, channel: ChannelName, at: int | None = None) -> StreamPosition:
        """Return the top position of a channel, the one that `history` would return.

        Args:
            at: Unix ms; return the position that the channel had then, by the clock that gives
                publications their times. If history does not reach back that far, its offset is 0.
        """
        ...

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        """Return what `position` returns of each channel, in as few round trips as possible."""
        ...

    async def top(self, channel: ChannelName) -> History:
        """Return what `history` would return, without publications."""
        ...

    async def remove_history(self, channel: ChannelName) -> None:
        """Remove the kept publications; the position stays."""
        ...

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        """Begin a new epoch of a stream that lost publications in `epoch`.

        Several nodes may notice the same loss: nothing happens when the stream has another epoch
        already.
        """
        ...


class Broker(Streams, Protocol):
    """Channels: publishing, streams, and delivery to the receiver of this node."""

    @property
    def pipelines_publishes(self) -> bool:
        """Whether the next publish may begin before the one before has ended.

        Publications into one channel keep the order in which the calls began then.
        """
        ...

    def shard(self, channel: ChannelName) -> int:
        """Return the number of the server that keeps a channel, 0 if there is only one.

        While a server cannot be reached, none of its streams can be read.
        """
        ...

    async def subscribe(self, channel: ChannelName) -> None:
        """Deliver what is published in a channel to the receiver, until `unsubscribe`.

        Returns when no later publication can be missed. Calls of this method and `unsubscribe`
        for one channel take effect in the order in which they begin. When it fails, the node is
        not subscribed.
        """
        ...

    async def unsubscribe(self, channel: ChannelName) -> None:
        """Stop the delivery of what is published in a channel.

        When it fails, publications may still be delivered.
        """
        ...


class Presence(Protocol):
    """The clients in each channel, over all nodes. Entries expire unless they are refreshed."""

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        """Add clients to a channel, or refresh their entries, for `lifetime` seconds."""
        ...

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        """Remove a client from a channel. An absent client is ignored."""
        ...

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        """Return the clients in a channel. Expired entries are left out."""
        ...


class Cluster(Protocol):
    """The nodes of a service, and what they know of each other."""

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        """Record a heartbeat: the node is alive for `lifetime` seconds.

        Args:
            node: the caller's own node. A `NodeStatus` records its counters, too.
        """
        ...

    async def withdraw(self, node: NodeInfo) -> None:
        """Remove a node that stops, with its channel list."""
        ...

    async def nodes(self) -> list[NodeInfo]:
        """Return the nodes that are alive, in no order."""
        ...

    async def statuses(self) -> list[NodeStatus]:
        """Return the nodes that are alive or died at most `NODES_REMEMBERED` seconds ago."""
        ...

    async def channels(self) -> list[ChannelName]:
        """Return the channels that have a subscriber at any node that is alive, in no order."""
        ...

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        """Start a survey: publish a question in the channel `channel_rules.QUESTIONS`.

        Args:
            survey: a new ID.
            lifetime: seconds for which answers are taken.
        """
        ...

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        """Answer a survey; an answer that comes too late is dropped. `answer`: UTF-8."""
        ...

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        """Return the answers to a survey from index `start` on, in the order of arrival."""
        ...

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        """Claim a name for a node for `lifetime` seconds. Claiming again renews the claim.

        Args:
            owner: the ID of the node.
            lifetime: 0 gives the name up.

        Returns:
            The ID of the owner: another node, if that one claimed the name first.
        """
        ...

    async def owner(self, name: str) -> str | None:
        """Return the ID of the node that owns a name, or None."""
        ...

    async def round_trip(self) -> float:
        """Return the seconds that a round trip takes now; with shards, those of the slowest."""
        ...


class Store(Protocol):
    """The parts of an engine, for a process that serves no clients."""

    @property
    def broker(self) -> Streams: ...

    @property
    def presence(self) -> Presence: ...

    @property
    def cluster(self) -> Cluster | None:
        """None: the service has one process."""
        ...


class Engine(Store, Protocol):
    """The parts of an engine, for a node. All methods belong to the node's event loop."""

    @property
    def broker(self) -> Broker: ...

    async def start(self, receiver: Receiver) -> None:
        """Begin to deliver to a receiver. When it fails, the engine is stopped."""
        ...

    async def stop(self) -> None:
        """Stop the delivery and release everything, within seconds whatever hangs."""
        ...
