"""Shared limits in PostgreSQL. Users are named by digests there, but for who is blocked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.packing import FOREIGN, pack, unpack
from realtime.engine.postgresql.streams import digest, key
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import UserID

_BLOCK = """
SELECT number, made, changed
FROM {schema}.block_users(%s::bytea[], %s::bytea[], %s::double precision[], %s)
"""
_BLOCKED = "SELECT made, changed, entries FROM {schema}.blocked_users(%s::bigint, %s::bigint)"
_ADD_DEBTS = """
SELECT {schema}.add_debts(
    %s::bytea[], %s::double precision[], %s::double precision[], %s::double precision
)
"""
_PLACE = """
SELECT users, here, elsewhere
FROM {schema}.place_connections(%s, %s::bytea[], %s::bigint[], %s, %s)
"""


class PostgreSQLLimits:
    """See `engine.limits.SharedLimits` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._blocked = Entries("A blocked user", FOREIGN)

    async def block(self, ends: Mapping[UserID, float]) -> Blocking:
        ((number, made, changed),) = await self._database.fetch(
            _BLOCK,
            [digest(user) for user in ends],
            [pack(records.of_blocked(user, end)) for user, end in ends.items()],
            [float(end) for end in ends.values()],
            MAX_BLOCKED,
        )
        return Blocking(number, _version(made, changed))

    async def blocked(self, known: ListVersion | None = None) -> BlockList | None:
        ((made, changed, entries),) = await self._database.fetch(
            _BLOCKED, *((None, None) if known is None else known)
        )
        version = _version(made, changed)
        if version == known:
            return None
        ends = self._blocked.decoded(entries or (), lambda entry: records.to_blocked(unpack(entry)))
        return BlockList(version, dict(ends))

    async def add_debts(self, debts: Sequence[Debt], elapsed: float) -> list[float]:
        ((lasting,),) = await self._database.fetch(
            _ADD_DEBTS,
            [key(f"{debt.rate}:") + digest(debt.user) for debt in debts],
            [debt.seconds for debt in debts],
            [debt.most for debt in debts],
            elapsed,
        )
        return list(lasting)

    async def place_connections(
        self,
        node: str,
        counts: Mapping[UserID, int],
        limit: int,
        *,
        clears: bool = False,
    ) -> Places:
        ((users, here, elsewhere),) = await self._database.fetch(
            _PLACE,
            node,
            [digest(user) for user in counts],
            list(counts.values()),
            limit,
            clears,
        )
        if users is None:
            raise EngineUnavailable("the heartbeats of this node are overdue")
        return Places(users, here, elsewhere)


def _version(made: int | None, changed: int | None) -> ListVersion:
    return NO_LIST if made is None or changed is None else ListVersion(made, changed)
