"""Presence in PostgreSQL: a row for each channel and client, with its expiry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from realtime.engine import records
from realtime.engine.postgresql.batches import Batches
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.packing import decoding, pack, unpack
from realtime.engine.postgresql.streams import key
from realtime.protocol.messages import ChannelName, ClientID, ClientInfo

MAX_ENTRIES = 1000
"""Entries of one statement."""
MAX_BATCH = 500
"""Calls that share a statement: mostly of one client each."""

# rows are written in the order of their keys, so that two nodes never wait for each other
_CHANGE = """
WITH change AS (
    SELECT * FROM unnest(%s::bytea[], %s::text[], %s::bytea[], %s::bigint[])
        AS each (channel, client, info, lifetime)
), gone AS (
    DELETE FROM {schema}.presence p USING change c
    WHERE c.info IS NULL AND p.channel = c.channel AND p.client = c.client
)
INSERT INTO {schema}.presence (channel, client, info, expires)
SELECT channel, client, info, {schema}.now_ms() + lifetime FROM change WHERE info IS NOT NULL
ORDER BY channel, client
ON CONFLICT (channel, client) DO UPDATE SET info = excluded.info, expires = excluded.expires
"""

_GET = """
SELECT client, info FROM {schema}.presence
WHERE channel = %s AND expires > (SELECT {schema}.now_ms())
"""


class PresenceChange(NamedTuple):
    """A change of an entry. `info`: None removes it. `lifetime`: in ms."""

    channel: bytes
    client: ClientID
    info: bytes | None = None
    lifetime: int = 0


class PostgreSQLPresence:
    """See `engine.base.Presence` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, channel: ChannelName, clients: Iterable[ClientInfo], lifetime: float
    ) -> None:
        name, milliseconds = key(channel), int(lifetime * 1000)
        changes = [
            PresenceChange(name, info.client, pack(records.of_client(info)), milliseconds)
            for info in clients
        ]
        for start in range(0, len(changes), MAX_ENTRIES):
            await self._change(changes[start : start + MAX_ENTRIES])

    async def remove(self, channel: ChannelName, client: ClientID) -> None:
        await self._change([PresenceChange(key(channel), client)])

    async def get(self, channel: ChannelName) -> Mapping[ClientID, ClientInfo]:
        rows = await self._database.fetch(_GET, key(channel))
        with decoding("a presence entry"):
            return {client: records.to_client(unpack(info)) for client, info in rows}

    async def _change(self, changes: Sequence[PresenceChange]) -> None:
        last = {(change.channel, change.client): change for change in changes}.values()
        columns = [[*column] for column in zip(*last, strict=True)]
        await self._database.fetch(_CHANGE, *columns)


class PostgreSQLNodePresence(PostgreSQLPresence):
    """The same for a node: what comes while a statement is under way shares the next one."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._batches: Batches[Sequence[PresenceChange], None] = Batches(self._write, MAX_BATCH)

    async def _change(self, changes: Sequence[PresenceChange]) -> None:
        await self._batches.add(changes)

    async def _write(self, batch: Sequence[Sequence[PresenceChange]]) -> Sequence[None]:
        await super()._change([change for changes in batch for change in changes])
        return [None] * len(batch)

    async def close(self) -> None:
        """Write nothing more."""
        await self._batches.close()
