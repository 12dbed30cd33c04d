"""Maps in PostgreSQL: reads entries; `streams` makes the changes. See `sql/streams_maps.sql`."""

from __future__ import annotations

from realtime.engine.entries import Entries
from realtime.engine.epochs import new_epoch
from realtime.engine.maps import Page
from realtime.engine.postgresql import streams
from realtime.engine.postgresql.database import Database
from realtime.engine.postgresql.packing import FOREIGN, text
from realtime.engine.postgresql.streams import MAX_COUNT, Keeping, to_entry
from realtime.protocol.messages import ChannelName, StreamPosition

_READ = "SELECT * FROM {schema}.read_map(%s, %s, %s::bytea, %s::bigint, %s::bigint, %s, %s::bigint)"
_DUE = (
    "SELECT m.channel, e.key FROM {schema}.map_entry e JOIN {schema}.map m ON m.id = e.map"
    " WHERE e.expires <= (SELECT {schema}.now_ms()) ORDER BY e.expires LIMIT %s"
)
_END = b"\0"
"""Behind a key: between the key and the next one."""


class PostgreSQLMaps:
    """See `engine.maps.Maps` for the contract."""

    def __init__(self, database: Database, keeping: Keeping) -> None:
        self._database = database
        self._keeping = keeping
        self._entries = Entries("An entry of a map", FOREIGN)

    async def page(self, channel: ChannelName, cursor: str = "", limit: int = 100) -> Page:
        return await self._read(channel, streams.key(cursor) + _END, None, min(limit, MAX_COUNT))

    async def get(self, channel: ChannelName, key: str) -> Page:
        name = streams.key(key)
        return await self._read(channel, name, name + _END, 1)

    async def _read(self, channel: ChannelName, low: bytes, high: bytes | None, limit: int) -> Page:
        keeping = self._keeping
        rows = await self._database.fetch(
            _READ,
            streams.key(channel),
            low,
            high,
            limit + 1,  # one more shows that there is another page
            keeping.meta_ms(channel),
            new_epoch(),
            keeping.glanced_lifetime * 1000,
        )
        offset, epoch, size, *_ = rows[0]
        page = [row[3:] for row in rows[:limit] if row[3] is not None]
        entries = self._entries.decoded((row[1:] for row in page), to_entry)
        cursor = text(page[-1][0]) if page and len(rows) > limit else ""
        return Page(tuple(entries), cursor, StreamPosition(offset, epoch), size)

    async def due(self, limit: int) -> list[tuple[ChannelName, str]]:
        rows = await self._database.fetch(_DUE, limit)
        return [(text(channel), text(name)) for channel, name in rows]
