"""Streams in PostgreSQL: publish, and read the streams of channels.

Each publication, or group of publications, is one statement in autocommit; see `sql/streams.sql`.
A ring follows the commit.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from realtime.engine import records
from realtime.engine.base import History, Joined, Notice, Outgoing, Published
from realtime.engine.entries import Entries
from realtime.engine.epochs import HELD_LIFETIME, OwnLifetime, bounded, new_epoch, no_lifetime
from realtime.engine.maps import Refusal
from realtime.engine.postgresql.database import Database, Refused, Row
from realtime.engine.postgresql.packing import FOREIGN
from realtime.engine.postgresql.rings import Message, Ringer
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName, Publication, StreamPosition

logger = logging.getLogger("realtime.engine")

MAX_COUNT = 2**31 - 1
"""More publications than a stream has."""
MAX_OFFSET = 2**63 - 1

TRIES = 3
_AGAIN = ("40001", "40P01")
"""A transaction of another came between, or there was a deadlock."""
_NO_PARTITION = "23514"

_PUBLISH = (
    "SELECT * FROM {schema}.publish_many(%s::bytea[], %s::bytea[], %s::bytea[], %s::integer[],"
    " %s::bigint[], %s::bigint[], %b::text[], %b::text[]::jsonb[], %s)"
)
"""`%b`: as text, each text of an array is quoted."""
_READ = (
    "SELECT * FROM {schema}.read_stream("
    "%s, %s::numeric, %s::bigint, %s, %s::bigint, %s, %s::bigint)"
)
_POSITIONS = (
    "SELECT * FROM {schema}.positions(%s::bytea[], %s::bigint, %s::bigint, %s::text[], %s::bigint)"
)
_REMOVE = "UPDATE {schema}.stream SET floor = top WHERE channel = %s"
_RENEW = "SELECT {schema}.renew_epoch(%s, %s, %s)"
_KEEP_HOUSE = "SELECT {schema}.keep_house(%s::integer, %s, %s)"


class Keeping(NamedTuple):
    """How long streams are kept."""

    meta_lifetime: int = 0
    """Seconds for which the position of an unused channel is kept, if not its publications are kept
    longer; 0: forever."""
    glanced_lifetime: int = HELD_LIFETIME
    """Seconds for which the epoch of a channel without publications is kept after a client has read
    it. Longer than nodes take from a position check to the next."""
    days: int = 8
    """Days for which publications are kept at most."""
    own_lifetime: OwnLifetime = no_lifetime
    least_lifetime: int = 0
    """Seconds for which any position is kept at least. A node checks the position of a channel with
    subscribers no more often."""

    def meta_ms(self, channel: ChannelName) -> int:
        """Return the ms for which the position of an unused channel is kept; 0: forever."""
        return self.kept_ms(self.own_lifetime(channel))

    def kept_ms(self, own: int) -> int:
        """As `meta_ms`. `own`: as `own_lifetime`."""
        return bounded(own or self.meta_lifetime, self.least_lifetime) * 1000


DEFAULT_KEEPING = Keeping()


class PostgreSQLStreams:
    """See `engine.base.Streams` for the contract."""

    _relaxes = True
    """Whether changes of ephemeral maps do not wait for the disk."""

    def __init__(self, database: Database, ringer: Ringer, keeping: Keeping) -> None:
        self._database = database
        self._ringer = ringer
        self._keeping = keeping
        self._entries = Entries("An entry of a map", FOREIGN)

    # publishing

    async def publish(self, outgoing: Outgoing) -> Published:
        (published,) = await self.publish_many([outgoing])
        if isinstance(published, EngineUnavailable):
            raise published
        return published

    async def publish_many(
        self, publications: Sequence[Outgoing]
    ) -> list[Published | EngineUnavailable]:
        messages: list[Message] = []
        try:
            kept = await self._keep(publications)
            messages = [message for _, message in kept if message is not None]
            if messages:
                await self._ringer.ring(messages)
        except EngineUnavailable as error:
            # a kept publication is published: nodes find it at their next look
            if not messages or not all(message.offset for message in messages):
                return [error] * len(publications)
        return [published for published, _ in kept]

    async def notify(self, channel: ChannelName, notice: Notice) -> None:
        content = {**records.of_client(notice.info), "joined": isinstance(notice, Joined)}
        await self._ringer.ring([Message(channel, Raw(msgspec.json.encode(content)))])

    async def _keep(
        self, publications: Sequence[Outgoing]
    ) -> list[tuple[Published, Message | None]]:
        """Keep publications in one statement.

        Returns:
            What became of each, and what is to be sent if it was published.
        """
        contents = [content_of(each) for each in publications]
        published = [Published()] * len(publications)
        sent = any(map(self._is_sent_within, publications))
        asked = [index for index, each in enumerate(publications) if sent or each.is_asked]
        asked.sort(key=lambda index: key(publications[index].channel))
        if asked:
            rows = [self._row(publications[index], contents[index]) for index in asked]
            columns = [[*column] for column in zip(*rows, strict=True)]
            relaxed = self._relaxes and all(_may_be_lost(publications[index]) for index in asked)
            replies = await self._call_publish(*columns, relaxed)
            for index, row in zip(asked, replies, strict=True):
                published[index] = self._published(*row)
        kept: list[tuple[Published, Message | None]] = []
        for each, content, done in zip(publications, contents, published, strict=True):
            message = None
            if done.kept and not (sent and done.position is None):
                at = done.position or StreamPosition(0, "")
                message = Message(each.channel, content, at.offset, at.epoch)
            kept.append((done, message))
        return kept

    def _published(
        self, offset: int | None, epoch: str, kept: bool, reason: Refusal | None, *entry: Any
    ) -> Published:
        """Return what became of a publication; see `publish_many` in `sql/streams.sql`."""
        position = None if offset is None else StreamPosition(offset, epoch)
        if reason is None:
            return Published(position, kept)
        found = [] if entry[0] is None else [entry]
        current = self._entries.decoded(found, to_entry)
        return Published(position, kept, reason, current[0] if current else None)

    def _is_sent_within(self, outgoing: Outgoing) -> bool:
        """Return whether the transaction of a publication must send the ring, too."""
        return is_sent_within(outgoing)

    def _row(self, outgoing: Outgoing, content: Raw) -> tuple[Any, ...]:
        """Return the arguments of `publish_many` in `sql/streams.sql` for one publication."""
        options, checks = outgoing.options, _checks(outgoing)
        if not options.keeps_history:
            checks["send"] = self._ringer.within(Message(outgoing.channel, content))
        return (
            key(outgoing.channel),
            bytes(content),
            key(outgoing.publication.uid),
            min(options.history_size, MAX_COUNT) if options.keeps_history else 0,
            min(options.history_lifetime * 1000, MAX_OFFSET // 4),
            self._keeping.kept_ms(options.meta_ttl),
            new_epoch(),
            json.dumps(checks) if checks else None,
        )

    async def _call_publish(self, *arguments: Any) -> list[Row]:
        for left in reversed(range(TRIES)):
            try:
                return await self._database.fetch(_PUBLISH, *arguments)
            except Refused as error:
                if left == 0 or error.state not in (*_AGAIN, _NO_PARTITION):
                    raise
                if error.state == _NO_PARTITION:
                    await self.keep_house(waits=True)
        raise AssertionError

    async def keep_house(self, *, waits: bool) -> None:
        """Create partitions, and drop what is not kept any more.

        Args:
            waits: for another process that does it.
        """
        days = min(self._keeping.days, MAX_COUNT)
        await self._database.fetch(_KEEP_HOUSE, days, new_epoch(), waits)

    # streams

    async def history(
        self,
        channel: ChannelName,
        start: int | None = None,
        limit: int | None = None,
        *,
        reverse: bool = False,
    ) -> History:
        top, *rows = await self._database.fetch(
            _READ,
            key(channel),
            None if start is None else min(max(start, 0), MAX_OFFSET),
            None if limit is None else min(limit, MAX_COUNT),
            reverse,
            self._keeping.meta_ms(channel),
            new_epoch(),
            self._keeping.glanced_lifetime * 1000,
        )
        publications: list[Publication] = []
        previous_uid = ""
        for offset, _, before, at, record in rows:
            try:
                if not publications and not reverse:
                    previous_uid = (before or b"").decode()
                publications.append(to_publication(record, offset, at))
            except Exception:  # no node of this version wrote it
                about = {"channel": channel}
                logger.exception("A publication in a channel cannot be decoded", extra=about)
                # it is lost, as if it was trimmed, and those before it with it
                if reverse:
                    break
                publications.clear()
        position = StreamPosition(top[0], top[1])
        return History(tuple(publications), position, (top[2] or b"").decode(), previous_uid)

    async def positions(
        self, channels: Sequence[ChannelName], at: int | None = None
    ) -> list[StreamPosition]:
        by_lifetime: defaultdict[int, set[ChannelName]] = defaultdict(set)
        for channel in channels:
            by_lifetime[self._keeping.meta_ms(channel)].add(channel)
        positions: dict[ChannelName, StreamPosition] = {}
        for lifetime, group in by_lifetime.items():
            names = sorted(group, key=key)  # those that are used are locked
            rows = await self._database.fetch(
                _POSITIONS,
                [key(name) for name in names],
                at,
                lifetime,
                [new_epoch() for _ in names],
                HELD_LIFETIME * 1000,
            )
            positions |= {name: StreamPosition(*row) for name, row in zip(names, rows, strict=True)}
        return [positions[channel] for channel in channels]

    async def remove_history(self, channel: ChannelName) -> None:
        await self._database.fetch(_REMOVE, key(channel))

    async def renew_epoch(self, channel: ChannelName, epoch: str) -> None:
        await self._database.fetch(_RENEW, key(channel), epoch, new_epoch())


def is_sent_within(outgoing: Outgoing) -> bool:
    """Return whether a ring is all that tells of a publication which the database decides about.

    It is sent in the transaction that uses an idempotency key, or changes a map: otherwise what is
    tried again would be lost, and changes would arrive in another order than they were made.
    """
    return outgoing.is_asked and not outgoing.options.keeps_history


def _may_be_lost(outgoing: Outgoing) -> bool:
    """Return whether a crash may take a change back."""
    return outgoing.once is None and not outgoing.options.keeps_history


def key(name: str) -> bytes:
    """Return a name as tables have it."""
    return name.encode(errors="surrogatepass")


def digest(name: str) -> bytes:
    """Return a short name of one that may be long."""
    return hashlib.blake2b(key(name), digest_size=16).digest()


def to_publication(record: bytes, offset: int, at: int = 0) -> Publication:
    """Return a kept or sent publication.

    Raises:
        Exception: no node wrote this record.
    """
    return records.to_publication(msgspec.json.decode(record), offset, at)


def to_entry(row: Row) -> Publication:
    """Return the entry of a map: offset, time and record. Raises as `to_publication`."""
    offset, at, record = row
    return to_publication(record, offset, at)


def content_of(outgoing: Outgoing) -> Raw:
    """Return the record of a publication, as it is kept and sent."""
    return Raw(msgspec.json.encode(records.of_publication(outgoing.publication)))


def _checks(outgoing: Outgoing) -> dict[str, Any]:
    """Return what is asked before a publication is made; see `sql/streams.sql`."""
    once, version, expect = outgoing.once, outgoing.version, outgoing.expect
    checks: dict[str, Any] = {}
    if once is not None:
        checks["once"] = once.digest(outgoing.channel)
        checks["lifetime"] = once.lifetime * 1000
    asked = checks
    if outgoing.publication.key:
        asked = checks["change"] = _change(outgoing)
    if version is not None:
        asked["version"] = version.number
        asked["version_epoch"] = key(version.epoch).hex()
    if isinstance(expect, StreamPosition):
        # jsonb has no NUL, and no epoch has one
        asked["offset"], asked["epoch"] = expect.offset, expect.epoch.replace("\0", "-")
    elif expect is not None:
        asked["offset"] = expect
    return checks


def _change(outgoing: Outgoing) -> dict[str, Any]:
    publication, options = outgoing.publication, outgoing.options
    name = key(publication.key)
    change = {"key": name.hex(), "mode": outgoing.key_mode}
    if publication.removed:
        return change
    return change | {
        "bytes": len(name) + len(publication.data.json),
        "ttl": options.ttl(outgoing.ttl) * 1000,
        "most_keys": options.map_max_keys,
        "most_bytes": options.map_max_bytes,
    }
