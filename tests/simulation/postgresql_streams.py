"""Statements of streams, rings and letters, in Python: each does to the model what its SQL does.

The functions have the names of those in `sql/streams.sql`,
or of the constant with the statement. They take a transaction and the arguments of the statement.
A reader that is one inner statement is no generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from realtime.engine.postgresql import delivery, listening, rings, streams
from realtime.pending import within
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction

DAY = 86_400_000

STATEMENTS = Statements()


class Stream(NamedTuple):
    """A row of `stream`."""

    id: int
    epoch: str
    expires: int | None = None
    top: int = 0
    floor: int = 0
    at: int = 0
    ends: int = 0
    uid: bytes | None = None
    before: bytes | None = None
    version: int | None = None
    version_epoch: bytes | None = None

    def lives(self, now: int) -> bool:
        return self.expires is None or self.expires > now


def first_epoch(t: Transaction, fresh: str) -> Running:
    if t.get("setting", "epoch") is None:
        yield from t.add("setting", "epoch", fresh)
    return [t.get("setting", "epoch")]


def begin_stream(t: Transaction, channel: bytes, fresh: str, meta: int) -> Running:
    now = t.now_ms()
    expires = now + meta if meta > 0 else None
    number = t.number("stream")
    epoch = fresh if meta > 0 else (yield from first_epoch(t, fresh))[0]
    yield from t.lock("stream", channel)
    row: Stream | None = t.get("stream", channel)
    if row is None:
        yield from t.put("stream", channel, Stream(number, epoch, expires))
    elif not row.lives(now):
        yield from t.put("stream", channel, Stream(number, fresh, expires))
    return []


def send(t: Transaction, content: dict[str, str]) -> Running:
    is_relaxed, end = t.is_relaxed, ""
    if "letter" in content:
        ((number,),) = yield from post(t, [content["letter"].encode()])
        t.is_relaxed, end = is_relaxed, f"{number}]]]"
    if "notify" in content:
        t.notifications[f"{t.now_us()} {content['ring']}{end}"] = None
    return []


def lock_stream(t: Transaction, channel: bytes, fresh: str, meta: int) -> Running:
    while True:
        found = yield from t.find("stream", channel, lambda row: row.lives(t.now_ms()))
        if found:
            return found
        yield from begin_stream(t, channel, fresh, meta)


def check_publication(
    t: Transaction, channel: bytes, size: int, meta: int, fresh: str, checks: dict[str, Any]
) -> Running:
    key = bytes.fromhex(checks["once"]) if "once" in checks else None
    stream: Stream | None = None
    position: Row = None, None
    if size == 0:
        yield from t.lock("channel", channel)
    else:
        (stream,) = yield from lock_stream(t, channel, fresh, meta)
        position = stream.top, stream.epoch
    now = t.now_ms()
    if key is not None:
        yield None
        used = t.get("once", key)
        if used is not None and used[2] > now:
            return [(used[:2], True)]
    if stream is not None:
        other_top = "offset" in checks and checks["offset"] != stream.top
        epoch = stream.epoch + t.timeline
        if other_top or checks.get("epoch", epoch) != epoch:
            return [(position, True)]
        version = checks.get("version")
        if version is not None and stream.version is not None and version <= stream.version:
            version_epoch = bytes.fromhex(checks["version_epoch"])
            if version_epoch in (b"", stream.version_epoch):
                return [(position, True)]
    if key is not None:
        yield from t.put("once", key, (None, None, now + checks["lifetime"]))
    return [(position, False)]


def use_stream(t: Transaction, channel: bytes, meta: int, fresh: str, held: int) -> Running:
    now = t.now_ms()
    row: Stream | None = t.get("stream", channel)
    if row is None or not row.lives(now):
        if meta == 0:
            return [Stream(0, (yield from first_epoch(t, fresh))[0] + t.timeline)]
        yield from begin_stream(t, channel, fresh, min(meta, held))
        row = t.get("stream", channel)
        assert row is not None
    elif meta > 0 or row.expires is not None:
        lifetime = min(meta, held) if row.top == 0 else meta
        expires = row.expires
        if meta == 0 or (expires is not None and expires < now + lifetime - lifetime // 100):
            number = row.id

            def is_shorter(row: Stream) -> bool:
                is_early = row.expires is not None and row.expires < now + lifetime
                return row.id == number and (meta == 0 or is_early)

            for found in (yield from t.find("stream", channel, is_shorter)):
                longer = now + lifetime if meta > 0 else None
                yield from t.put("stream", channel, found._replace(expires=longer))
    return [row._replace(epoch=row.epoch + t.timeline)]


@STATEMENTS.runs(streams._READ)
def read_stream(
    t: Transaction,
    channel: bytes,
    start: int | None,
    most: int | None,
    backwards: bool,
    meta: int,
    fresh: str,
    held: int,
) -> Running:
    (stream,) = yield from use_stream(t, channel, meta, fresh, held)
    rows: list[Row] = [(stream.top, stream.epoch, stream.uid, stream.at, None)]
    low, high = stream.floor if stream.ends > t.now_ms() else stream.top, stream.top
    if start is not None and backwards:
        high = min(start, stream.top)
    elif start is not None:
        low = min(max(start - 1, low), stream.top)
    yield None
    offsets = range(high, low, -1) if backwards else range(low + 1, high + 1)
    for offset in offsets[:most]:
        if (entry := t.get("entry", (stream.id, offset))) is not None:
            at, record, before = entry
            rows.append((offset, None, before, at, record))
    return rows


@STATEMENTS.runs(streams._POSITIONS)
def positions(
    t: Transaction,
    channels: Sequence[bytes],
    moment: int | None,
    meta: int,
    fresh: Sequence[str],
    held: int,
) -> Running:
    rows: list[Row] = []
    for channel, epoch in zip(channels, fresh, strict=True):
        yield None
        (stream,) = yield from use_stream(t, channel, meta, epoch, held)
        offset = stream.top
        if moment is not None and stream.at > moment:
            offset = 0
            if stream.ends > t.now_ms():
                for earlier in range(stream.top - 1, stream.floor, -1):
                    entry = t.get("entry", (stream.id, earlier))
                    if entry is not None and entry[0] <= moment:
                        offset = earlier
                        break
        rows.append((offset, stream.epoch))
    return rows


@STATEMENTS.runs(within._USED)
def used_keys(t: Transaction, digests: Sequence[bytes]) -> list[Row]:
    rows = [(digest, t.get("once", digest)) for digest in {*digests}]
    return [(digest,) for digest, row in rows if row is not None and row[2] > t.now_ms()]


@STATEMENTS.runs(streams._REMOVE)
def remove(t: Transaction, channel: bytes) -> Running:
    for row in (yield from t.find("stream", channel, lambda _: True)):
        yield from t.put("stream", channel, row._replace(floor=row.top))
    return []


@STATEMENTS.runs(streams._RENEW)
def renew_epoch(t: Transaction, channel: bytes, lost: str, fresh: str) -> Running:
    found = yield from t.find("stream", channel, lambda row: row.epoch + t.timeline == lost)
    if found:
        yield from t.put("stream", channel, found[0]._replace(epoch=fresh))
        return [(None,)]
    yield None
    if t.get("stream", channel) is None:
        for _ in (yield from t.find("setting", "epoch", lambda value: value + t.timeline == lost)):
            yield from t.put("setting", "epoch", fresh)
    return [(None,)]


@STATEMENTS.runs(delivery._NEWS)
def news(
    t: Transaction,
    channels: Sequence[bytes],
    tops: Sequence[int],
    epochs: Sequence[str],
    most: int,
) -> list[Row]:
    rows: list[Row] = []
    for channel, top, epoch in sorted(zip(channels, tops, epochs, strict=True)):
        stream: Stream | None = t.get("stream", channel)
        if stream is None or (stream.top, now := stream.epoch + t.timeline) == (top, epoch):
            continue
        stored = epoch.partition("-")[0]
        known = top if stored in ("", stream.epoch) or top < stream.top else 0
        entries: list[Row] = []
        for offset in range(max(stream.floor, known) + 1, stream.top + 1):
            if len(entries) < most and (entry := t.get("entry", (stream.id, offset))) is not None:
                entries.append((channel, stream.top, now, offset, entry[1]))
        rows += entries or [(channel, stream.top, now, None, None)]
    return rows


@STATEMENTS.runs(delivery._TOPS)
def tops(t: Transaction, channels: Sequence[bytes]) -> list[Row]:
    rows: list[Row] = []
    for channel in channels:
        stream: Stream | None = t.get("stream", channel)
        if stream is None or not stream.lives(t.now_ms()):
            rows.append((0, "", t.now_us()))
        else:
            rows.append((stream.top, stream.epoch + t.timeline, t.now_us()))
    return rows


@STATEMENTS.runs(delivery._LOOK)
def look(t: Transaction, channels: Sequence[bytes], tops: Sequence[int]) -> list[Row]:
    found = [
        (channel, t.get("stream", channel), top)
        for channel, top in zip(channels, tops, strict=True)
    ]
    return [(channel,) for channel, row, top in found if row is not None and row.top != top]


@STATEMENTS.runs(streams._KEEP_HOUSE)
def keep_house(t: Transaction, days: int, fresh: str, waits: bool) -> Running:
    now = t.now_ms()
    today = now // DAY
    if not waits and not t.is_free("keep_house"):
        return [(None,)]
    yield from t.lock("keep_house")
    for day in range(today - 1, today + 3):
        if t.get("partition", day) is None:
            yield from t.put("partition", day, True)
    yield None
    cleaned = t.get("setting", "cleaned")
    if cleaned is not None and abs(now - int(cleaned)) < 50_000:
        return [(None,)]
    yield from t.put("setting", "cleaned", str(now))
    for day, _ in t.scan("partition"):
        if day < today - days:
            yield from t.put("partition", day, None)
            for key, (at, *_) in t.scan("entry"):
                if at // DAY == day:
                    yield from t.put("entry", key, None)
    for number, (at, _) in t.scan("letter"):
        if at <= t.now_us() - 60_000_000:
            yield from t.put("letter", number, None)
    for key, (_, _, expires) in t.scan("once"):
        if expires <= now and t.is_free("once", key):
            yield from t.put("once", key, None)
    yield None
    gone = [key for key, row in t.scan("stream") if not row.lives(now) and t.is_free("stream", key)]
    for key in gone:
        yield from t.put("stream", key, None)
    if gone:
        for _ in (yield from t.find("setting", "epoch", lambda _: True)):
            yield from t.put("setting", "epoch", fresh)
    return [(None,)]


# rings and letters


@STATEMENTS.runs(rings._POST)
def post(t: Transaction, contents: Sequence[bytes]) -> Running:
    t.is_relaxed = True
    yield from t.lock("letters")
    rows: list[Row] = []
    for content in contents:
        number = t.number("letter")
        yield from t.put("letter", number, (t.now_us(), content))
        rows.append((number,))
    return rows


@STATEMENTS.runs(rings._NOTIFY)
def notify(t: Transaction, schema: str, payloads: Sequence[str]) -> list[Row]:
    t.notifications |= dict.fromkeys(f"{t.now_us()} {payload}" for payload in payloads)
    return [("",)] * len(payloads)


@STATEMENTS.runs(delivery._LETTER)
def letter(t: Transaction, number: int) -> list[Row]:
    row = t.get("letter", number)
    return [] if row is None else [(row[1],)]


@STATEMENTS.runs(listening._LAST)
def last_letter(t: Transaction) -> list[Row]:
    return [(max((number for number, _ in t.scan("letter")), default=0),)]


@STATEMENTS.runs(listening._NEWEST)
def newest_letter(t: Transaction) -> list[Row]:
    return [(t.database.sequences.get("letter", 1),)]


@STATEMENTS.runs(listening._POLL)
def poll(t: Transaction, last: int) -> list[Row]:
    numbers = range(last + 1, t.database.sequences.get("letter", 0) + 1)
    found = [(number, t.get("letter", number)) for number in numbers]
    return [(number, b"%d " % row[0] + row[1]) for number, row in found if row is not None]
