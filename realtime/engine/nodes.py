"""The contract of a cluster, which is a part of an engine: the nodes, and what they share.

What callers and implementations can rely on is in `base`.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from realtime.payload import Payload


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
    """False when heartbeats are overdue: it died, or it cannot reach the engine."""

    def info(self) -> NodeInfo:
        """Return the node without the details."""
        return NodeInfo(*(getattr(self, field) for field in NodeInfo.__struct_fields__))


NODES_REMEMBERED = 310.0
"""Seconds after its last heartbeat for which `Cluster.statuses` lists a node that died."""

SurveyID: TypeAlias = str


class Cluster(Protocol):
    """The nodes of a service, and what they know of each other."""

    async def announce(self, node: NodeInfo, lifetime: float) -> None:
        """Record a heartbeat: the node is alive for `lifetime` seconds, below NODES_REMEMBERED.

        Args:
            node: the caller's own node. A `NodeStatus` records its counters, too.
        """

    async def withdraw(self, node: NodeInfo, held_seconds: float | None = None) -> None:
        """Remove a node that stops, with its lists.

        Args:
            node: the caller's own node.
            held_seconds: until users in channels that it still lists end; None: at once.
        """

    async def statuses(self) -> list[NodeStatus]:
        """Return the nodes that are alive or died at most `NODES_REMEMBERED` seconds ago."""

    async def ask(self, survey: SurveyID, question: Payload, lifetime: float) -> None:
        """Start a survey: publish a question in the channel `channel_rules.QUESTIONS`.

        Args:
            survey: a new ID.
            lifetime: seconds for which answers are taken.
        """

    async def answer(self, survey: SurveyID, answer: bytes) -> None:
        """Answer a survey; an answer that comes too late is dropped. `answer`: UTF-8."""

    async def answers(self, survey: SurveyID, start: int) -> list[bytes]:
        """Return the answers to a survey from index `start` on, in the order of arrival."""

    async def claim(self, name: str, owner: str, lifetime: float) -> str:
        """Claim a name for a node for `lifetime` seconds. Claiming again renews the claim.

        Args:
            owner: the ID of the node.
            lifetime: 0 gives the name up.

        Returns:
            The ID of the owner: another node, if that one claimed the name first.
        """

    async def owner(self, name: str) -> str | None:
        """Return the ID of the node that owns a name, or None."""

    async def round_trip(self) -> float:
        """Return the seconds that a round trip takes now; with shards, those of the slowest."""
