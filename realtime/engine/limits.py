"""The contract of shared limits, an optional part of an engine: what a user may do over all nodes.

Without it each node counts by itself, and learns from control messages who is blocked. What
callers and implementations can rely on is in `base`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from realtime.protocol.messages import UserID

MAX_BLOCKED = 10_000
"""Users that may be blocked at once: each node has all of them in memory, 3 MB."""


class ListVersion(NamedTuple):
    """The version of a list that the engine may lose, as a whole or its last changes."""

    made: int
    """When the list was made, Unix microseconds. Another one is another list: the engine has lost
    the one before."""
    changed: int
    """Grows with each change of this list. One that is lower: the engine has lost the last
    changes."""


NO_LIST = ListVersion(0, 0)
"""Nothing was ever changed, or the engine has lost its data."""


class BlockList(NamedTuple):
    """The blocked users, read at one moment."""

    version: ListVersion
    ends: Mapping[UserID, float]
    """User → when the block ends, Unix seconds."""


class Blocking(NamedTuple):
    """What became of a change of the blocked users."""

    number: int
    """How many of the users are blocked now."""
    version: ListVersion
    """Of the list with this change."""


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


class SharedLimits(Protocol):
    """The blocked users of a service, the debts of users, and the places of their connections.

    Blocks end by themselves.
    """

    async def block(self, ends: Mapping[UserID, float]) -> Blocking:
        """Block users, unblock them, or change when their blocks end.

        A user is not blocked where `MAX_BLOCKED` others are.

        Args:
            ends: user → when the block ends, Unix seconds; 0 unblocks.
        """

    async def blocked(self, known: ListVersion | None = None) -> BlockList | None:
        """Return the users who are blocked now; None if the version of the list is `known`."""

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        """Add debts to those of the same users and rates at other nodes.

        Args:
            debts: what was taken.
            elapsed: the seconds in which it was taken, until now.

        Returns:
            The seconds until each is over.
        """

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
