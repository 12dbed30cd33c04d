"""The contract of a cluster, which is a part of an engine: the nodes, and what they share.

What callers and implementations can rely on is in `base`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from realtime.payload import Payload
from realtime.protocol.messages import ChannelName, UserID


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
    loop_lag: float = 0.0
    """Seconds by which its event loop was late in a tenth of the last half minute, or longer."""
    last_seen_seconds: float = 0.0
    """Seconds since its last heartbeat."""
    alive: bool = True
    """False when heartbeats are overdue: it died, or it cannot reach Redis."""


NODES_REMEMBERED = 310.0
"""Seconds after its last heartbeat for which `Cluster.statuses` lists a node that died."""

SurveyID: TypeAlias = str


MAX_BLOCKED = 10_000
"""Users that may be blocked at once: each node has all of them in memory, 3 MB."""


class ListVersion(NamedTuple):
    """The version of a list that Redis may lose, as a whole or its last changes."""

    made: int
    """When the list was made, Unix microseconds. Another one is another list: Redis has lost the
    one before."""
    changed: int
    """Grows with each change of this list. One that is lower: Redis has lost the last changes."""


NO_LIST = ListVersion(0, 0)
"""Nothing was ever changed, or Redis has lost its data."""


class BlockList(NamedTuple):
    """The blocked users, read at one moment."""

    version: ListVersion
    ends: Mapping[UserID, float]
    """User → when the block ends, Unix seconds."""


class Blocks(Protocol):
    """The blocked users of a service. Blocks end by themselves."""

    async def add(self, ends: Mapping[UserID, float]) -> int:
        """Block users, or change when their blocks end, and return how many are blocked of them.

        A user is not blocked where `MAX_BLOCKED` others are.
        """
        ...

    async def remove(self, user: UserID) -> None:
        """Unblock a user. One who is not blocked is ignored."""
        ...

    async def read(self) -> BlockList:
        """Return the users who are blocked now."""
        ...

    async def version(self) -> ListVersion:
        """Return the version that `read` would return."""
        ...


class Debt(NamedTuple):
    """What a user took of a rate at one node; see `config.rates`."""

    rate: str
    """The name of the rate."""
    user: UserID
    seconds: float
    """How many seconds it takes until as much may be taken again."""
    most: float
    """How many seconds of debt a user may have over all nodes."""


class Places(NamedTuple):
    """The connections of users that have a place within a limit for all nodes."""

    users: int
    """Users with places at the node that asks."""
    here: list[int]
    """Places at this node, of the users about whom it asks."""
    elsewhere: list[int]
    """Their places at the other nodes that are alive."""


class Cluster(Protocol):
    """The nodes of a service, and what they know of each other."""

    @property
    def blocks(self) -> Blocks: ...

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

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        """Add debts to those of the same users and rates at other nodes.

        Args:
            debts: what was taken.
            elapsed: the seconds in which it was taken, until now.

        Returns:
            The seconds until each is over.
        """
        ...

    async def place_connections(
        self,
        node: str,
        counts: Mapping[UserID, int],
        limit: int,
        *,
        clears: bool = False,
    ) -> Places:
        """Give connections of users at a node a place, as far as other nodes leave room.

        A node keeps the places that it has, as long as it has the connections. Its places end with
        it: when it withdraws, and when its heartbeats are overdue, although it may come back.

        Args:
            node: the ID of the node.
            counts: user → connections at this node.
            limit: the places of a user.
            clears: whether the node gives up all of its places before.

        Raises:
            EngineUnavailable: also if the node is not announced, or its heartbeats are overdue.
        """
        ...

    async def round_trip(self) -> float:
        """Return the seconds that a round trip takes now; with shards, those of the slowest."""
        ...
