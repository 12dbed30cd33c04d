"""The contract of lists, which are a part of an engine: what there is at each node.

A node lists its channels, its users, and the users in its channels that have `join_leave` "user".
A name is listed once, however many connections stand for it. So the first node that lists a name
and the last one that stops are known, over all nodes.

States of the lists of a node
    alive      the node sends heartbeats
    overdue    it has sent none for as long as it promised. Its names count as listed
    swept      another node takes the names out, and tells of those that no other node lists
    gone       nothing is left of them

Events
    withdraw   the node stops: alive → gone; or → overdue with the users that it holds
    sweep      overdue → swept → gone
    heartbeat  overdue or swept → alive: the node was frozen or cut off. Others have reported the
               end of each name they took out. So the node lists these anew, and reports them

Invariants
    - Of each name, "first" and "last" are reported by turns, over all nodes.
    - A name is taken out of the list of a node once. The same step decides whether that was the
      last one. So each end is reported at most once; and exactly once, unless the process that
      took the name out dies before it reports it, or the engine loses data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from realtime.protocol.messages import ChannelName, UserID

LISTS_KEPT = 300.0
"""Seconds for which the lists of a node that died are kept, if no other node sweeps them."""

MAX_LISTED_USER = 255
"""Characters of a user ID. Users with longer ones are not listed."""


class Kind(StrEnum):
    """What a list has."""

    CHANNELS = "channels"
    """Channels that have a subscriber at the node."""
    USERS = "users"
    """Users with a connection to the node."""
    CHANNEL_USERS = "channel_users"
    """Users with a subscription at the node, with the channel. See `pair`."""


def pair(channel: ChannelName, user: UserID) -> str:
    """Return the name of a user in a channel."""
    return f"{len(channel)}:{channel}{user}"


def parts_of(name: str) -> tuple[ChannelName, UserID]:
    """Return what `pair` was given.

    Raises:
        ValueError: no node wrote this name.
    """
    length, _, text = name.partition(":")
    return text[: int(length)], text[int(length) :]


def is_listable(user: UserID) -> bool:
    """Return whether a user is listed: not an anonymous one, and none with a very long ID."""
    return 0 < len(user) <= MAX_LISTED_USER


class Swept(NamedTuple):
    """Names that were taken out of a list of a node that died, and that no other node lists."""

    kind: Kind
    names: list[str]


class Lists(Protocol):
    """The lists of all nodes. What callers and implementations can rely on is in `base`."""

    async def listed(self, kind: Kind, names: Sequence[str]) -> list[bool]:
        """Return of each name whether a node lists it."""

    async def names(self, kind: Kind) -> Collection[str]:
        """Return the names that nodes list, in no order."""

    async def size(self, kind: Kind) -> int:
        """Return the number of names that nodes list. One that several nodes list counts once."""

    async def sweep(self, attempt: str) -> Swept | None:
        """Take some names out of the lists of nodes that died; None: there are none left.

        Args:
            attempt: another one for each call. A call that got no reply is repeated with the same
                one, and returns the same.
        """


class NodeLists(Lists, Protocol):
    """The same, with the lists of this node. A report goes to the receiver; see `base.Receiver`."""

    def add(self, kind: Kind, name: str) -> None:
        """List a name at this node, soon. One that is listed is ignored."""

    def discard(self, kind: Kind, name: str) -> None:
        """List a name no longer, soon. One that is not listed is ignored."""
