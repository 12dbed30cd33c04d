"""Shared limits in Redis, on the shard of the control stream.

Users are named by digests there, and the entries of blocked ones pass the serializer, which may
encrypt them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from realtime.channel_rules import CONTROL
from realtime.engine import records
from realtime.engine.entries import Entries
from realtime.engine.limits import (
    MAX_BLOCKED,
    NO_LIST,
    Blocking,
    BlockList,
    Debt,
    ListVersion,
    Places,
)
from realtime.engine.redis.scripts import ADD_DEBTS, BLOCK, BLOCKED, PLACE_CONNECTIONS
from realtime.engine.redis.shards import MAX_ENTRIES_PER_STEP, OTHER_KEYS, Shards, decoding
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import UserID
from realtime.redis.commands import Argument


class RedisLimits:
    """See `engine.limits.SharedLimits` for the contract."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._keys = shards.keys
        self._blocked = Entries("A blocked user", OTHER_KEYS)

    async def block(self, ends: Mapping[UserID, float]) -> Blocking:
        number, version, users = 0, b"", list(ends)
        for start in range(0, len(users), MAX_ENTRIES_PER_STEP):
            arguments: list[Argument] = [MAX_BLOCKED]
            for user in users[start : start + MAX_ENTRIES_PER_STEP]:
                entry = self._shards.pack(records.of_blocked(user, ends[user]))
                arguments += (_digest(user), entry, int(ends[user] * 1000))
            blocked, version = await self._shards.run(CONTROL, BLOCK, self._keys.blocked, arguments)
            number += blocked
        return Blocking(number, _version(version))

    async def blocked(self, known: ListVersion | None = None) -> BlockList | None:
        if known is not None:
            version = await self._shards.command(CONTROL, b"GET", self._keys.blocked[2])
            if _version(version or b"") == known:
                return None
        version, *entries = await self._shards.run(CONTROL, BLOCKED, self._keys.blocked)
        ends = self._blocked.decoded(
            entries[1::2], lambda entry: records.to_blocked(self._shards.unpack(entry))
        )
        return BlockList(_version(version), dict(ends))

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        arguments: list[Argument] = [f"{elapsed * 1000:.3f}"]
        for debt in debts:
            arguments += (
                f"{debt.rate}:{_digest(debt.user)}",
                f"{debt.seconds * 1000:.3f}",
                f"{debt.most * 1000:.0f}",
            )
        left = await self._shards.run(CONTROL, ADD_DEBTS, (self._keys.debts,), arguments)
        return [milliseconds / 1000 for milliseconds in left]

    async def place_connections(
        self,
        node: str,
        counts: Mapping[UserID, int],
        limit: int,
        *,
        clears: bool = False,
    ) -> Places:
        arguments: list[Argument] = [node, self._keys.connections(), limit, int(clears)]
        for user, count in counts.items():
            arguments += (_digest(user), count)
        keys = (self._keys.connections(node), self._keys.nodes[1])
        reply = await self._shards.run(CONTROL, PLACE_CONNECTIONS, keys, arguments)
        if not reply:
            raise EngineUnavailable("the heartbeats of this node are overdue")
        return Places(reply[0], reply[1::2], reply[2::2])


def _version(value: bytes) -> ListVersion:
    """Return the version that block.lua wrote, NO_LIST of an empty one."""
    if not value:
        return NO_LIST
    with decoding("a version"):
        made, changed = value.decode().split(":")
        return ListVersion(int(made), int(changed))


def _digest(user: UserID) -> str:
    """Return a short name of a user, whose ID may be long."""
    return hashlib.blake2b(user.encode(), digest_size=16).hexdigest()
