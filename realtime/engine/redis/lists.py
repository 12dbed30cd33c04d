"""Lists in Redis: a set for each node and kind, and the nodes that have any.

All of it is on the shard of the control stream. A heartbeat keeps the sets; it writes no names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from realtime.channel_rules import CONTROL
from realtime.engine.base import Receiver
from realtime.engine.channel_list import MAX_NAMES_PER_STEP, FirstAndLast
from realtime.engine.entries import decodable
from realtime.engine.lists import LISTS_KEPT, Kind, Swept
from realtime.engine.node_lists import ListsByKind
from realtime.engine.redis.scripts import FORGET_SEEN, LIST_NAMES, RENEW_LISTS, SWEEP
from realtime.engine.redis.shards import Shards, decoding
from realtime.protocol.messages import UserID
from realtime.redis.commands import Argument

SWEPT_REMEMBERED = 86_400.0
"""Seconds for which a node that was swept learns of it when it is back."""

MAX_NAMES_AT_ONCE = 1000
"""Names of one question to Redis."""

MAX_NAMES_OF_UNION = 5000
"""Names up to which Redis unites the lists of all nodes in one step, and does nothing else."""


class RedisLists:
    """See `engine.lists.Lists` for the contract."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._keys = shards.keys
        self.seen = RedisSeenUsers(shards)

    async def listed(self, kind: Kind, names: Sequence[str]) -> list[bool]:
        keys = await self._keys_of(kind)
        found: list[bool] = []
        for start in range(0, len(names), MAX_NAMES_AT_ONCE):
            part = names[start : start + MAX_NAMES_AT_ONCE]
            is_listed = [False] * len(part)
            for key in keys:
                reply = await self._shards.command(CONTROL, b"SMISMEMBER", key, *part)
                with decoding("an answer about a list"):
                    is_listed = [
                        one or bool(other) for one, other in zip(is_listed, reply, strict=True)
                    ]
            found += is_listed
        return found

    async def names(self, kind: Kind) -> Collection[str]:
        return await self._union(await self._keys_of(kind))

    async def size(self, kind: Kind) -> int:
        keys = await self._keys_of(kind)
        return await self._size(keys[0]) if len(keys) == 1 else len(await self._union(keys))

    async def _union(self, keys: Sequence[str]) -> Collection[str]:
        """Return the names in some lists, each once.

        Many names are read in parts, so that Redis does other things meanwhile. Then a name that
        moves from one node to another in these moments may be missing.
        """
        if len(keys) > 1 and await self._is_small(keys):
            names = await self._shards.command(CONTROL, b"SUNION", *keys)
            with decoding("a name in a list"):
                return [name.decode() for name in names]
        found: set[str] = set()
        for key in keys:
            found |= await members(self._shards, key)
        return found

    async def _is_small(self, keys: Sequence[str]) -> bool:
        number = 0
        for key in keys:
            number += await self._size(key)
            if number > MAX_NAMES_OF_UNION:
                return False
        return True

    async def _size(self, key: str) -> int:
        size: int = await self._shards.command(CONTROL, b"SCARD", key)
        return size

    async def _keys_of(self, kind: Kind) -> list[str]:
        """Return the keys of the lists of the nodes that are alive."""
        nodes = await self._shards.packed_entries(CONTROL, self._keys.nodes)
        with decoding("the ID of a node"):
            return [self._keys.list_of(kind, uid.decode()) for uid, _ in nodes]

    async def sweep(self, attempt: str) -> Swept | None:
        keys = self._keys
        arguments: list[Argument] = [
            attempt,
            MAX_NAMES_PER_STEP,
            int(self.seen.notes),
            int(SWEPT_REMEMBERED * 1000),
            Kind.USERS.value,
        ]
        # leaves first: pages wait for them
        for kind in (Kind.CHANNEL_USERS, Kind.USERS, Kind.CHANNELS):
            arguments += (kind.value, keys.list_of(kind))
        names = (keys.nodes[1], keys.lists, keys.swept, keys.seen_users, keys.sweep)
        reply = await self._shards.run(CONTROL, SWEEP, names, arguments)
        if reply is None:
            return None
        with decoding("a kind of list"):
            kind = Kind(reply[0].decode())
        return Swept(kind, decodable(reply[1:], bytes.decode))


class RedisSeenUsers:
    """See `engine.seen.SeenUsers` for the contract."""

    def __init__(self, shards: Shards) -> None:
        self.notes = False
        """Whether this node notes users who go offline here, or are swept by it."""
        self._shards = shards
        self._key = shards.keys.seen_users

    def note(self) -> None:
        self.notes = True

    async def users(self, limit: int) -> Mapping[UserID, int]:
        users: dict[UserID, int] = {}
        cursor = b"0"
        while len(users) < limit:
            cursor, part = await self._shards.command(
                CONTROL, b"HSCAN", self._key, cursor, b"COUNT", MAX_NAMES_AT_ONCE
            )
            with decoding("when a user was seen"):
                for user, at in zip(part[::2], part[1::2], strict=True):
                    users[user.decode()] = int(at)
            if cursor == b"0":
                break
        return users

    async def at(self, user: UserID) -> int | None:
        reply = await self._shards.command(CONTROL, b"HGET", self._key, user)
        with decoding("when a user was seen"):
            return None if reply is None else int(reply)

    async def forget(self, users: Mapping[UserID, int]) -> None:
        names = list(users)
        for start in range(0, len(names), MAX_NAMES_PER_STEP):
            arguments: list[Argument] = []
            for user in names[start : start + MAX_NAMES_PER_STEP]:
                arguments += (user, users[user])
            await self._shards.run(CONTROL, FORGET_SEEN, (self._key,), arguments)


async def members(shards: Shards, key: str) -> set[str]:
    """Return the names in a list, read in parts."""
    names: set[str] = set()
    cursor = b"0"
    while True:
        cursor, part = await shards.command(
            CONTROL, b"SSCAN", key, cursor, b"COUNT", MAX_NAMES_PER_STEP
        )
        with decoding("a name in a list"):
            names.update(name.decode() for name in part)
        if cursor == b"0":
            return names


class RedisNodeLists(RedisLists, ListsByKind):
    """See `engine.lists.NodeLists` for the contract: with the lists of this node."""

    def __init__(self, shards: Shards) -> None:
        RedisLists.__init__(self, shards)
        ListsByKind.__init__(self)

    def open(self, receiver: Receiver, uid: str) -> None:
        """Begin to write, what was noted so far included. Reports go to the receiver.

        Args:
            receiver: the node.
            uid: the ID of the node.
        """
        self._open(receiver, lambda kind: RedisNodeSet(self._shards, kind, uid, self.seen))

    async def renew(self, node: str, lifetime: float) -> None:
        """Keep the lists of this node until `lifetime` seconds have passed without another call.

        Raises:
            EngineUnavailable: Redis did not answer, or refused. The next call continues.
        """
        keys = self._keys
        arguments = (node, int(lifetime * 1000), int((lifetime + LISTS_KEPT) * 1000))
        names = (keys.lists, keys.swept, *(keys.list_of(kind, node) for kind in Kind))
        if await self._shards.run(CONTROL, RENEW_LISTS, names, arguments):
            await self._begin_anew()
            # from here on it may write again
            await self._shards.command(CONTROL, b"ZREM", keys.swept, node)
        await self._renew()

    async def withdraw(self, node: str, held_seconds: float | None) -> None:
        """Write the last changes, and remove the lists of this node, but for users that it holds.

        Raises:
            EngineUnavailable: Redis did not answer, or refused. Another node sweeps them.
        """
        keys = self._keys
        await self._finish()
        kinds = list(Kind)
        if held_seconds is not None and self._lists[Kind.CHANNEL_USERS]:
            kinds.remove(Kind.CHANNEL_USERS)
            arguments = (node, int(held_seconds * 1000), int(LISTS_KEPT * 1000))
            await self._shards.run(CONTROL, RENEW_LISTS, (keys.lists, keys.swept), arguments)
        else:
            await self._shards.command(CONTROL, b"ZREM", keys.lists, node)
        await self._shards.command(CONTROL, b"DEL", *(keys.list_of(kind, node) for kind in kinds))


class RedisNodeSet:
    """See `channel_list.ChannelSet`: the set of one node."""

    def __init__(self, shards: Shards, kind: Kind, uid: str, seen: RedisSeenUsers) -> None:
        self._shards = shards
        self._kind = kind
        self._uid = uid
        self._seen = seen
        self._key = shards.keys.list_of(kind, uid)

    async def change(
        self, added: Sequence[str], removed: Sequence[str], *, report: bool
    ) -> FirstAndLast | None:
        keys = self._shards.keys
        notes_seen = report and self._kind is Kind.USERS and self._seen.notes
        reply = await self._shards.run(
            CONTROL,
            LIST_NAMES,
            (self._key, keys.nodes[1], keys.lists, keys.swept, keys.seen_users),
            (self._uid, keys.list_of(self._kind), int(notes_seen), len(added), *added, *removed),
        )
        if reply is None:
            return None
        if not report:
            return (), ()
        with decoding("a name in a list"):
            first, last = [[name.decode() for name in names] for names in reply]
        return first, last

    async def size(self) -> int:
        size: int = await self._shards.command(CONTROL, b"SCARD", self._key)
        return size

    async def members(self) -> set[str]:
        return await members(self._shards, self._key)
