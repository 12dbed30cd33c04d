"""The contract of an engine: where streams and presence live, and what connects the nodes.

A new engine can be written from this file alone; `tests/engine` holds every implementation
to it. Arguments are clean: names are valid, options say what is on. Any exception means
"the engine failed" and leaves nothing half-done.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from realtime.config.options import ChannelOptions
from realtime.payload import Payload
from realtime.protocol.messages import (
    ChannelName,
    ClientID,
    ClientInfo,
    Publication,
    StreamPosition,
)


class NodeInfo(Struct, frozen=True, gc=False):
    """What a node says of itself. `uptime` in seconds since its start. Spec: Node."""

    uid: str
    name: str
    version: str
    num_clients: int
    num_users: int
    num_channels: int
    uptime: int


class NodeStatus(NodeInfo, frozen=True, gc=False):
    """A node with what operators want to know besides."""

    messages_published: int = 0
    """Publications of its process since its start: of its clients, its API, the site's code."""
    messages_delivered: int = 0
    """Publications pushed to its clients since its start."""
    silent_for: float = 0.0
    """Seconds since its last sign of life."""
    alive: bool = True
    """False: it died, or nobody hears it."""


NODES_REMEMBERED = 310.0
"""Seconds after its last sign of life in which a node is known that did not withdraw."""

Concerns: TypeAlias = Callable[[ChannelName], bool]
"""Whether a channel is one of those that are spoken of."""


class Receiver(Protocol):
    """What an engine needs of its node: where it hands over what arrives. Never blocks."""

    def on_publication(
        self, channel: ChannelName, publication: Publication, position: StreamPosition | None
    ) -> None:
        """A publication arrived; `position` is its place in the stream, None without history."""
        ...

    def on_join(self, channel: ChannelName, info: ClientInfo) -> None:
        """A client subscribed, on whichever node."""
        ...

    def on_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        """A client unsubscribed, on whichever node."""
        ...

    def on_occupied(self, channel: ChannelName) -> None:
        """A channel has its first subscriber, counting all nodes; it came to this one."""
        ...

    def on_vacated(self, channel: ChannelName) -> None:
        """A channel has lost its last subscriber, counting all nodes; it left this one."""
        ...

    def on_interrupted(self, concerns: Concerns) -> None:
        """What is published from now on into some channels may not arrive."""
        ...

    def on_resumed(self, concerns: Concerns) -> None:
        """What is published from now on into these channels arrives again."""
        ...


class Store(Protocol):
    """Streams, presence and publishing: what a process needs that serves no clients."""

    async def publish(
        self, channel: ChannelName, publication: Publication, options: ChannelOptions
    ) -> StreamPosition | None:
        """Publish to every node that subscribed to the channel.

        With history on, the publication is numbered (its `offset` is set) and kept in the
        same atomic step, and the position is returned: whoever reads history afterwards
        finds it there, and nodes receive publications with the offsets history has.
        """
        ...

    async def publish_many(
        self, publications: Sequence[tuple[ChannelName, Publication, ChannelOptions]]
    ) -> list[BaseException | None]:
        """Publish several, those into one channel in their order; what failed, by index."""
        ...

    async def publish_join(self, channel: ChannelName, info: ClientInfo) -> None:
        """Tell every node that a client subscribed."""
        ...

    async def publish_leave(self, channel: ChannelName, info: ClientInfo) -> None:
        """Tell every node that a client unsubscribed."""
        ...

    # streams

    async def history(self, channel: ChannelName, since: int = 0) -> History:
        """What is kept from offset `since` on, and the top position, read at one moment.

        The position of a channel nothing was published into has offset 0 and an epoch that
        the first publication will have too. Offset and epoch outlive the publications.
        """
        ...

    async def position(self, channel: ChannelName) -> StreamPosition:
        """The top position of a channel."""
        ...

    async def remove_history(self, channel: ChannelName) -> None:
        """Forget the kept publications; the position stays."""
        ...

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        """Begin a new epoch of a stream that lost publications in `epoch`.

        Nothing happens when it has another epoch already.
        """
        ...

    # presence

    async def add_presence(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        """Record, or renew, clients as present for `lifetime` seconds."""
        ...

    async def remove_presence(self, channel: ChannelName, client: ClientID) -> None:
        """Forget a client in a channel; no error when it is not there."""
        ...

    async def presence(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        """Who is present: connection ID → client info. Expired entries are not in it."""
        ...

    # the service

    async def channels(self) -> list[ChannelName]:
        """Channels with at least one subscriber on any node, in no order."""
        ...

    async def nodes(self) -> list[NodeInfo]:
        """The nodes that announced themselves and are alive; none when nodes are not shared."""
        ...

    async def statuses(self) -> list[NodeStatus]:
        """These nodes, and those that fell silent within `NODES_REMEMBERED` seconds."""
        ...

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        """Put a question to every node, as a publication in the channel `keys.QUESTIONS`.

        Answers are taken for `lifetime` seconds.
        """
        ...

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        """What was answered so far, from the answer with this index on."""
        ...

    async def round_trip(self) -> float | None:
        """Seconds that a round trip takes just now; None where there is none."""
        ...


class Engine(Store, Protocol):
    """A store with delivery to a node. All methods belong to the node's event loop."""

    shared: bool
    """Whether other processes see the same streams, presence and publications."""

    async def start(self, receiver: Receiver) -> None:
        """Begin to hand over what arrives."""
        ...

    async def stop(self) -> None:
        """Hand over nothing more and release everything. Bounded in time."""
        ...

    async def subscribe(self, channel: ChannelName) -> None:
        """This node has its first subscriber in a channel: hand over what is published there.

        Returns when nothing published from now on can be missed. Calls of this and of
        `unsubscribe` for one channel take effect in the order in which they begin.
        """
        ...

    async def unsubscribe(self, channel: ChannelName) -> None:
        """This node has no subscriber left in a channel."""
        ...

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        """Make the node `owner` the owner of a name for `lifetime` seconds; returns the owner.

        That is another node, when one was first. The owner renews it by claiming again;
        lifetime 0 gives the name up.
        """
        ...

    async def owner(self, name: str) -> str | None:
        """The node that owns a name, if there is one; None where nodes are not shared."""
        ...

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        """Say that this node is alive, for `lifetime` seconds; a `NodeStatus` says more."""
        ...

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        """Answer a question, if answers to it are still taken. `answer`: UTF-8."""
        ...

    async def withdraw(self, node: NodeInfo) -> None:
        """Say that this node is gone."""
        ...


class History(NamedTuple):
    """A reading of a channel's stream, taken at one moment.

    publications: the kept ones asked for, oldest first, offsets without a gap.
    position: the top of the stream at that moment; offset 0 when nothing was published.
    """

    publications: tuple[Publication, ...]
    position: StreamPosition


SurveyID: TypeAlias = str


EPOCH_BITS = 48


def new_epoch() -> str:
    """Hexadecimal digits that no other epoch has. Cheap: every publication brings one along."""
    return f"{random.getrandbits(EPOCH_BITS):x}"
