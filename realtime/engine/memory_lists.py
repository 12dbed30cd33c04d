"""Lists in memory: there is one node, so what it lists first is first everywhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from realtime.engine.base import Receiver
from realtime.engine.lists import MAX_SEEN, Kind, NoLists
from realtime.protocol.messages import UserID


class MemoryLists(NoLists):
    """See `engine.lists.NodeLists` for the contract. Nothing is swept: the node is the service."""

    def __init__(self) -> None:
        self.receiver: Receiver | None = None
        self._names: dict[Kind, set[str]] = {kind: set() for kind in Kind}
        self._seen: dict[UserID, int] | None = None

    def add(self, kind: Kind, name: str) -> None:
        names = self._names[kind]
        if name not in names:
            names.add(name)
            if self.receiver is not None:
                self.receiver.on_first(kind, name)

    def discard(self, kind: Kind, name: str) -> None:
        names = self._names[kind]
        if name not in names:
            return
        names.remove(name)
        if kind is Kind.USERS and self._seen is not None and len(self._seen) < MAX_SEEN:
            self._seen[name] = int(time.time() * 1000)
        if self.receiver is not None:
            self.receiver.on_last(kind, name)

    def leave_behind(self, seconds: float) -> None:
        pass

    def keep_seen(self) -> None:
        self._seen = self._seen or {}

    async def listed(self, kind: Kind, names: Sequence[str]) -> list[bool]:
        return [name in self._names[kind] for name in names]

    async def names(self, kind: Kind) -> Collection[str]:
        return frozenset(self._names[kind])

    async def size(self, kind: Kind) -> int:
        return len(self._names[kind])

    async def seen(self, limit: int) -> Mapping[UserID, int]:
        return dict(islice((self._seen or {}).items(), limit))

    async def seen_at(self, user: UserID) -> int | None:
        return (self._seen or {}).get(user)

    async def forget_seen(self, seen: Mapping[UserID, int]) -> None:
        known = self._seen or {}
        for user, at in seen.items():
            if known.get(user) == at:
                del known[user]
