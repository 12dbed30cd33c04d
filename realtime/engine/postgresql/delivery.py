"""Delivery: what a node gets of the channels that it follows.

States of a followed channel
    new        its top is being read; nothing is delivered
    at a top   everything up to it is delivered
    behind     there is news beyond the top: it is read, for all channels in one statement

Events
    message    a ring brought a publication. The next one is delivered, an older one is ignored;
               beyond a gap, or while the channel is behind: behind. What no stream keeps is
               delivered at once, or later while the channel is new or behind
    news       a ring names the channel, or a look finds another top: behind
    read       publications up to the top of the stream are delivered: at a top, if none are left

Invariants
    - Publications of a stream are delivered in their order, each at most once.
    - Of those that are trimmed before they are read, the receiver learns the position alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from realtime.engine import records
from realtime.engine.base import Joined, Left, Receiver
from realtime.engine.postgresql.batches import Batches
from realtime.engine.postgresql.database import Database, Row
from realtime.engine.postgresql.rings import EVERYWHERE, Message, Ring, digest, digests
from realtime.engine.postgresql.streams import key, to_publication
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import ChannelName, StreamPosition

logger = logging.getLogger("realtime.engine")

READ_AT_ONCE = 500
"""Channels whose news one statement reads."""
MAX_NEWS = 200
"""Publications of a channel that one statement reads."""
LOOK_AT_ONCE = 10_000
"""Channels whose tops one look reads."""
RETRY_DELAY = 0.5
MOST_LATE_US = 10_000_000
"""Microseconds by which a ring may be late. One that looks older shows a clock that was moved."""

_NEWS = "SELECT * FROM {schema}.news(%s::bytea[], %s::bigint[], %s::text[], %s)"
_TOPS = (
    "SELECT coalesce(s.top, 0), coalesce(s.epoch || (SELECT {schema}.timeline()), ''),"
    " {schema}.now_us() FROM unnest(%s::bytea[]) WITH ORDINALITY AS f(channel, n)"
    " LEFT JOIN {schema}.stream s ON s.channel = f.channel"
    " AND (s.expires IS NULL OR s.expires > {schema}.now_ms()) ORDER BY f.n"
)
_LOOK = (
    "SELECT s.channel FROM unnest(%s::bytea[], %s::bigint[]) AS f(channel, top)"
    " JOIN {schema}.stream s ON s.channel = f.channel WHERE s.top <> f.top"
)
_LETTER = "SELECT ring FROM {schema}.letter WHERE id = %s"


class _Followed:
    __slots__ = ("epoch", "key", "known", "later", "name", "since", "top")

    known: asyncio.Future[None]
    """Done when the top is known, or cannot be read."""

    def __init__(self, name: ChannelName) -> None:
        self.name = name
        self.key = key(name)
        self.top = -1
        """The offset up to which everything is delivered; -1 until it is known."""
        self.epoch = ""
        """"" until it is known: before the first publication."""
        self.later: list[tuple[int, bytes]] = []
        """What no stream keeps, and comes after the news: when it was sent, and the record."""
        self.since = 0
        """Unix µs by the clock of the database. What no stream keeps is delivered if it was sent
        later: a ring may be on its way when the node subscribes again."""


class StreamDelivery:
    """See the module. All methods belong to one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.receiver: Receiver | None = None
        self._followed: dict[bytes, _Followed] = {}
        self._by_digest: dict[str, dict[bytes, None]] = {}
        self._behind: dict[bytes, None] = {}
        self._reading: asyncio.Task[None] | None = None
        self._read_now: list[bytes] = []
        """Channels in the statement under way."""
        self._new: Batches[_Followed, None] = Batches(self._read_tops, READ_AT_ONCE)
        self._looked = 0
        self.is_interrupted = True
        """Whether rings are missed."""

    # following

    async def follow(self, channel: ChannelName) -> None:
        """Deliver what is published in a channel from now on.

        Raises:
            EngineUnavailable: the top cannot be read; the channel is not followed.
        """
        if self.is_interrupted:
            raise EngineUnavailable("delivery by PostgreSQL is interrupted")
        followed = self._followed.get(key(channel))
        if followed is None:
            followed = _Followed(channel)
            self._followed[followed.key] = followed
            self._by_digest.setdefault(digest(channel), {})[followed.key] = None
            followed.known = self._new.add(followed)
        try:
            await asyncio.shield(followed.known)
        except BaseException:
            if self._followed.get(followed.key) is followed:
                self.unfollow(channel)
            raise

    def unfollow(self, channel: ChannelName) -> None:
        followed = self._followed.pop(key(channel), None)
        if followed is None:
            return
        self._behind.pop(followed.key, None)
        keys = self._by_digest[digest(channel)]
        del keys[followed.key]
        if not keys:
            del self._by_digest[digest(channel)]

    async def _read_tops(self, new: Sequence[_Followed]) -> Sequence[None]:
        rows = await self._database.fetch(_TOPS, [each.key for each in new])
        for followed, row in zip(new, rows, strict=True):
            followed.top, followed.epoch, followed.since = row
        self._deliver_later(each.key for each in new)
        self._read_news()
        return [None] * len(new)

    # news

    def on_restored(self) -> None:
        """Read what was missed, perhaps at another server with another clock."""
        self.is_interrupted = False
        for followed in self._followed.values():
            followed.since = 0
        self.fall_behind(self._followed)

    async def on_ring(self, payload: bytes) -> None:
        """Deliver what a ring brings; see `rings`."""
        sent, _, payload = payload.partition(b" ")
        try:
            at = int(sent)
            ring = msgspec.json.decode(payload, type=Ring)
        except ValueError:  # a program that is no node
            logger.error("A notification cannot be decoded")
            return
        if ring.news == EVERYWHERE:
            self.fall_behind(self._followed)
        else:
            for each in digests(ring.news):
                self.fall_behind(self._by_digest.get(each, ()))
        for message in ring.messages:
            if (followed := self._followed.get(key(message.channel))) is not None:
                await self._on_message(message, followed, at)

    def fall_behind(self, names: Iterable[bytes]) -> None:
        """Read what is new in channels."""
        self._behind |= dict.fromkeys(names)
        self._read_news()

    async def look(self, database: Database) -> None:
        """Find channels of which a ring was lost. Of very many, each look takes some."""
        names = [*self._followed]
        if self._looked >= len(names):
            self._looked = 0
        names = names[self._looked : self._looked + LOOK_AT_ONCE]
        self._looked += LOOK_AT_ONCE
        tops = [self._followed[name].top for name in names]
        rows = await database.fetch(_LOOK, names, tops)
        self.fall_behind(name for (name,) in rows if name in self._followed)

    async def _on_message(self, message: Message, followed: _Followed, at: int) -> None:
        name = followed.key
        record = bytes(message.record)
        if message.offset:
            epochs = ("", message.epoch)
            if followed.top < 0 or self._is_behind(name) or followed.epoch not in epochs:
                self.fall_behind([name])
            elif message.offset == followed.top + 1:
                followed.top, followed.epoch = message.offset, message.epoch
                self._deliver(followed, message.offset, record)
            elif message.offset > followed.top:
                self.fall_behind([name])
            return
        if message.letter:
            try:
                letters = await self._database.fetch(_LETTER, message.letter)
            except EngineUnavailable:
                return
            record = letters[0][0] if letters else b"null"
        if _is_late(at, record, followed):
            return
        if followed.top < 0 or self._is_behind(followed.key):
            followed.later.append((at, record))
        else:
            self._deliver(followed, 0, record)

    def _is_behind(self, name: bytes) -> bool:
        return name in self._behind or name in self._read_now

    def _read_news(self) -> None:
        if self._behind and self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._behind:
                names = [
                    name
                    for name in self._behind
                    if (followed := self._followed.get(name)) is not None and followed.top >= 0
                ][:READ_AT_ONCE]
                if not names:
                    return  # those that are new: again when their tops are known
                followed_now = [self._followed[name] for name in names]
                tops = [each.top for each in followed_now]
                epochs = [each.epoch for each in followed_now]
                for name in names:
                    del self._behind[name]
                self._read_now = names
                try:
                    rows = await self._database.fetch(_NEWS, names, tops, epochs, MAX_NEWS)
                except EngineUnavailable:
                    self._behind |= dict.fromkeys(names)
                    await asyncio.sleep(RETRY_DELAY)
                    continue
                self._deliver_news(rows)
                self._read_now = []
                self._deliver_later(names)
        finally:
            self._reading = None
            self._read_now = []
            self._behind = {name: None for name in self._behind if name in self._followed}

    def _deliver_news(self, rows: Sequence[Row]) -> None:
        tops: dict[bytes, tuple[int, str]] = {}
        for name, top, epoch, offset, record in rows:
            followed = self._followed.get(name)
            if followed is None or followed.top < 0:
                continue
            tops[name] = top, epoch
            if offset is not None and (offset > followed.top or followed.epoch != epoch):
                followed.top, followed.epoch = offset, epoch
                self._deliver(followed, offset, record)
        counts = Counter(row[0] for row in rows)
        for name, (top, epoch) in tops.items():
            followed = self._followed.get(name)
            if followed is None or (followed.top, followed.epoch) == (top, epoch):
                continue
            if followed.epoch == epoch and followed.top > 0 and counts[name] >= MAX_NEWS:
                self.fall_behind([name])
            elif self.receiver is not None:
                followed.top, followed.epoch = top, epoch
                self.receiver.on_advance(followed.name, StreamPosition(top, epoch))

    def _deliver_later(self, names: Iterable[bytes]) -> None:
        for name in names:
            followed = self._followed.get(name)
            if followed is not None and followed.later and name not in self._behind:
                later, followed.later = followed.later, []
                for at, record in later:
                    if not _is_late(at, record, followed):
                        self._deliver(followed, 0, record)

    def _deliver(self, followed: _Followed, offset: int, record: bytes) -> None:
        receiver = self.receiver
        if receiver is None:
            return
        try:
            content = msgspec.json.decode(record)
            if "joined" in content:
                kind = Joined if content["joined"] else Left
                receiver.on_notice(followed.name, kind(records.to_client(content)))
                return
            publication = to_publication(record, offset)
        except Exception:  # no node of this version wrote it
            about = {"channel": followed.name}
            logger.exception("A publication in a channel cannot be decoded", extra=about)
            return
        position = StreamPosition(offset, followed.epoch) if offset else None
        receiver.on_publication(followed.name, publication, position)

    async def close(self) -> None:
        self.receiver = None
        self._followed.clear()
        self._by_digest.clear()
        self._behind.clear()
        await self._new.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def _is_late(at: int, record: bytes, followed: _Followed) -> bool:
    """Return whether a message was sent before its channel was followed.

    A change of a map never is: it may be committed after the map was read.
    """
    if not followed.since - MOST_LATE_US < at < followed.since:
        return False
    try:
        return not to_publication(record, 0).key
    except Exception:  # a notice
        return True
