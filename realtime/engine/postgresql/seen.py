"""Seen users in PostgreSQL: a row for each user who went offline."""

from __future__ import annotations

from collections.abc import Mapping

from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.packing import decoding, text
from realtime.engine.postgresql.streams import key
from realtime.engine.seen import MAX_SEEN
from realtime.protocol.messages import UserID

_USERS = "SELECT name, at FROM {schema}.seen LIMIT %s"
_AT = "SELECT at FROM {schema}.seen WHERE name = %s"
_FORGET = """
DELETE FROM {schema}.seen s USING unnest(%s::bytea[], %s::bigint[]) AS noted (name, at)
WHERE s.name = noted.name AND s.at = noted.at
"""


class PostgreSQLSeenUsers:
    """See `engine.seen.SeenUsers` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._notes = False

    @property
    def most(self) -> int | None:
        """How many users this node notes who go offline here, or are swept by it; None: none."""
        return MAX_SEEN if self._notes else None

    def note(self) -> None:
        self._notes = True

    async def users(self, limit: int) -> Mapping[UserID, int]:
        rows = await self._database.fetch(_USERS, limit)
        with decoding("a seen user"):
            return {text(name): at for name, at in rows}

    async def at(self, user: UserID) -> int | None:
        rows = await self._database.fetch(_AT, key(user))
        return rows[0][0] if rows else None

    async def forget(self, users: Mapping[UserID, int]) -> None:
        names = [key(user) for user in users]
        await self._database.fetch(_FORGET, names, list(users.values()))
