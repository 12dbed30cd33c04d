"""Blocked users in Redis: one list for the service, on the shard of the control stream.

Users are named by digests there, and the entries pass the serializer, which may encrypt them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping

from realtime.channel_rules import CONTROL
from realtime.engine.nodes import MAX_BLOCKED, NO_LIST, BlockList, ListVersion
from realtime.engine.redis import records
from realtime.engine.redis.scripts import BLOCK, BLOCKED, UNBLOCK
from realtime.engine.redis.shards import MAX_ENTRIES_PER_STEP, Shards, decoding
from realtime.protocol.messages import UserID
from realtime.redis.commands import Argument

logger = logging.getLogger("realtime.engine")


class RedisBlocks:
    """See `engine.nodes.Blocks` for the contract."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._keys = shards.keys.blocked
        self._is_strange = False
        """Whether an entry could not be decoded: logged once, since it is read again and again."""

    async def add(self, ends: Mapping[UserID, float]) -> int:
        added, users = 0, list(ends)
        for start in range(0, len(users), MAX_ENTRIES_PER_STEP):
            arguments: list[Argument] = [MAX_BLOCKED]
            for user in users[start : start + MAX_ENTRIES_PER_STEP]:
                entry = self._shards.pack(records.of_blocked(user, ends[user]))
                arguments += (_digest(user), entry, int(ends[user] * 1000))
            added += await self._shards.run(CONTROL, BLOCK, self._keys, arguments)
        return added

    async def remove(self, user: UserID) -> None:
        await self._shards.run(CONTROL, UNBLOCK, self._keys, (_digest(user),))

    async def read(self) -> BlockList:
        version, *entries = await self._shards.run(CONTROL, BLOCKED, self._keys)
        ends: dict[UserID, float] = {}
        strange = 0
        for entry in entries[1::2]:
            try:
                user, end = records.to_blocked(self._shards.unpack(entry))
                ends[user] = end
            except Exception:  # serializers and decoders raise all kinds of them
                strange += 1
        if strange and not self._is_strange:
            logger.error(
                "Blocked users are left out, because their entries cannot be decoded: %d. Do all"
                " processes have the same encryption keys?",
                strange,
            )
            self._is_strange = True
        return BlockList(_version(version), ends)

    async def version(self) -> ListVersion:
        return _version(await self._shards.command(CONTROL, b"GET", self._keys[2]) or b"")


def _version(value: bytes) -> ListVersion:
    """Return the version that block.lua wrote, NO_LIST of an empty one."""
    if not value:
        return NO_LIST
    with decoding("a version"):
        made, changed = value.decode().split(":")
        return ListVersion(int(made), int(changed))


def _digest(user: UserID) -> str:
    return hashlib.blake2b(user.encode(), digest_size=16).hexdigest()
