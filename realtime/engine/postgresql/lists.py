"""Lists in PostgreSQL: a row for each kind, name and node, and the nodes that have any.

A heartbeat keeps the rows; it writes no names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from realtime.engine.base import Receiver
from realtime.engine.channel_list import MAX_NAMES_PER_STEP, FirstAndLast
from realtime.engine.entries import decodable
from realtime.engine.lists import Kind, Swept
from realtime.engine.node_lists import ListsByKind
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.packing import decoding, text
from realtime.engine.postgresql.seen import PostgreSQLSeenUsers
from realtime.engine.postgresql.streams import key

SWEPT_REMEMBERED = 86_400_000
"""Milliseconds for which a node that was swept learns of it when it is back."""
UNANNOUNCED_LIFETIME = 60_000
"""Milliseconds for which names of a node are listed that has sent no heartbeat yet."""

_ALIVE = "JOIN {schema}.node n ON n.uid = l.node AND n.alive_until > {schema}.now_ms()"
_LISTED = f"""
SELECT each FROM unnest(%s::bytea[]) AS each CROSS JOIN LATERAL (
    SELECT FROM {{schema}}.listed l {_ALIVE} WHERE l.kind = %s AND l.name = each LIMIT 1
) AS found
"""
_NAMES = f"SELECT DISTINCT l.name FROM {{schema}}.listed l {_ALIVE} WHERE l.kind = %s"
_SIZE = f"SELECT count(DISTINCT l.name) FROM {{schema}}.listed l {_ALIVE} WHERE l.kind = %s"
_SWEEP = "SELECT of_kind, names FROM {schema}.sweep(%s, %s, %s, %s::bigint)"
_CHANGE = """
SELECT first_names, last_names
FROM {schema}.list_names(%s, %s, %s::bytea[], %s::bytea[], %s, %s::bigint)
"""
_SIZE_HERE = "SELECT count(*) FROM {schema}.listed WHERE node = %s AND kind = %s"
_NAMES_HERE = "SELECT name FROM {schema}.listed WHERE node = %s AND kind = %s"
_KNOW_SWEEP = "DELETE FROM {schema}.swept WHERE node = %s"
_WITHDRAW = "SELECT {schema}.withdraw_lists(%s, %s::bigint)"


class PostgreSQLLists:
    """See `engine.lists.Lists` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.seen = PostgreSQLSeenUsers(database)

    async def listed(self, kind: Kind, names: Sequence[str]) -> list[bool]:
        encoded = [key(name) for name in names]
        found = {name for (name,) in await self._database.fetch(_LISTED, encoded, kind.value)}
        return [name in found for name in encoded]

    async def names(self, kind: Kind) -> Collection[str]:
        return _decoded(await self._database.fetch(_NAMES, kind.value))

    async def size(self, kind: Kind) -> int:
        ((size,),) = await self._database.fetch(_SIZE, kind.value)
        return int(size)

    async def sweep(self, attempt: str) -> Swept | None:
        ((kind, names),) = await self._database.fetch(
            _SWEEP, attempt, MAX_NAMES_PER_STEP, SWEPT_REMEMBERED, self.seen.most
        )
        if kind is None:
            return None
        return Swept(Kind(kind), decodable(names, text))


class PostgreSQLNodeLists(PostgreSQLLists, ListsByKind):
    """See `engine.lists.NodeLists` for the contract: with the lists of this node."""

    def __init__(self, database: Database) -> None:
        PostgreSQLLists.__init__(self, database)
        ListsByKind.__init__(self)

    def open(self, receiver: Receiver, uid: str) -> None:
        """Begin to write, what was noted so far included. Reports go to the receiver.

        Args:
            receiver: the node.
            uid: the ID of the node.
        """
        self._open(receiver, lambda kind: PostgreSQLNodeSet(self._database, kind, uid, self.seen))

    async def renew(self, node: str, *, swept: bool) -> None:
        """Write again what the lists of this node lack.

        Args:
            swept: whether another node has taken names out of them.

        Raises:
            EngineUnavailable: PostgreSQL did not answer, or refused. The next call continues.
        """
        if swept:
            await self._begin_anew()
            # from here on it may write again
            await self._database.fetch(_KNOW_SWEEP, node)
        await self._renew()

    async def withdraw(self, node: str, held_seconds: float | None) -> None:
        """Write the last changes, and remove the lists of this node, but for users that it holds.

        Raises:
            EngineUnavailable: PostgreSQL did not answer, or refused. Another node sweeps them.
        """
        await self._finish()
        holds = held_seconds is not None and self._lists[Kind.CHANNEL_USERS]
        held = int(held_seconds * 1000) if holds and held_seconds is not None else None
        await self._database.fetch(_WITHDRAW, node, held)


class PostgreSQLNodeSet:
    """See `channel_list.ChannelSet`: rows of one node."""

    def __init__(self, database: Database, kind: Kind, uid: str, seen: PostgreSQLSeenUsers) -> None:
        self._database = database
        self._kind = kind
        self._uid = uid
        self._seen = seen

    async def change(
        self, added: Sequence[str], removed: Sequence[str], *, report: bool
    ) -> FirstAndLast | None:
        ((first, last),) = await self._database.fetch(
            _CHANGE,
            self._uid,
            self._kind.value,
            [key(name) for name in added],
            [key(name) for name in removed],
            UNANNOUNCED_LIFETIME,
            self._seen.most if report and self._kind is Kind.USERS else None,
        )
        if first is None:
            return None
        return ([*map(text, first)], [*map(text, last)]) if report else ((), ())

    async def size(self) -> int:
        ((size,),) = await self._database.fetch(_SIZE_HERE, self._uid, self._kind.value)
        return int(size)

    async def members(self) -> set[str]:
        return set(_decoded(await self._database.fetch(_NAMES_HERE, self._uid, self._kind.value)))


def _decoded(rows: Sequence[tuple[bytes, ...]]) -> list[str]:
    with decoding("a name in a list"):
        return [text(name) for (name,) in rows]
