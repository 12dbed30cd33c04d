"""The contract of seen users, an optional part of an engine: when users went offline.

An app that keeps this in a database takes it from here. What callers and implementations can rely
on is in `base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from realtime.protocol.messages import UserID

MAX_SEEN = 1_000_000
"""Users of whom it is kept when they went offline, until that is forgotten; others are not."""


class SeenUsers(Protocol):
    """Users who went offline, and when: Unix ms. Only where a node notes that."""

    def note(self) -> None:
        """Note from now on when users go offline, at this node."""

    async def users(self, limit: int) -> Mapping[UserID, int]:
        """Return up to `limit` users, or some more, in no order."""

    async def at(self, user: UserID) -> int | None:
        """Return what `users` has of one user."""

    async def forget(self, users: Mapping[UserID, int]) -> None:
        """Forget what `users` returned, but for users who went offline again since then."""
