"""The statement that publishes, in Python. See `postgresql_streams`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from realtime.engine.postgresql import streams
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction, failure
from tests.simulation.postgresql_maps import Begun, begin_change, put_entry
from tests.simulation.postgresql_streams import (
    DAY,
    Stream,
    begin_stream,
    check_publication,
    lock_stream,
    send,
)

NO_PARTITION = "23514"

STATEMENTS = Statements()


@STATEMENTS.runs(streams._PUBLISH)
def publish_many(t: Transaction, *arguments: Any) -> Running:
    *columns, relaxed = arguments
    t.is_relaxed = t.is_relaxed or relaxed
    rows: list[Row] = []
    for channel, record, uid, size, lifetime, meta, fresh, text in zip(*columns, strict=True):
        checks = json.loads(text) if text is not None else {}
        begun: Begun | None = None
        offset = epoch = None
        kept = True
        if "change" in checks:
            yield None
            if size == 0:
                yield from t.lock("channel", channel)
            else:
                (locked,) = yield from lock_stream(t, channel, fresh, meta)
            begun = yield from begin_change(t, channel, locked if size else None, meta, checks)
            (offset, epoch), kept = begun.position, begun.reason is None
        elif text is not None:
            yield None
            checked = yield from check_publication(t, channel, size, meta, fresh, checks)
            (offset, epoch), refused = checked[0]
            epoch, kept = epoch and epoch + t.timeline, not refused
        if kept and "send" in checks:
            yield from send(t, checks["send"])
        if kept and size > 0:
            longer = meta if begun is None else begun.meta
            row = channel, record, uid, size, lifetime, meta, fresh
            stream = yield from _append(t, row, longer, checks)
            offset, epoch = stream.top, stream.epoch + t.timeline
        if begun is None:
            rows.append((offset, epoch, kept, None, None, None, None))
            continue
        if kept and "bytes" in checks["change"]:
            at = stream.at if size else t.now_ms()
            yield from put_entry(t, begun.id, checks["change"], offset or 0, at, record)
        rows.append((offset, epoch, kept, begun.reason, *begun.entry))
    return rows


def _append(t: Transaction, row: Row, meta: int, checks: dict[str, Any]) -> Running:
    channel, record, uid, size, lifetime, first_meta, fresh = row
    while True:
        yield None
        now = t.now_ms()
        found = yield from t.find("stream", channel, partial(_lives, now))
        if found:
            break
        yield from begin_stream(t, channel, fresh, first_meta)
    before: Stream = found[0]
    stream = before._replace(
        top=before.top + 1,
        floor=max(before.top if before.ends <= now else before.floor, before.top + 1 - size),
        at=max(before.at, now),
        ends=now + lifetime,
        before=before.uid,
        uid=uid,
        expires=now + max(meta, 2 * lifetime) if meta > 0 else None,
    )
    if "version" in checks:
        stream = stream._replace(
            version=checks["version"], version_epoch=bytes.fromhex(checks["version_epoch"])
        )
    yield from t.put("stream", channel, stream)
    if t.get("partition", stream.at // DAY) is None:
        raise failure(NO_PARTITION)
    yield from t.put("entry", (stream.id, stream.top), (stream.at, record, stream.before))
    if "once" in checks:
        key = bytes.fromhex(checks["once"])
        expires = t.get("once", key)[2]
        yield from t.put("once", key, (stream.top, stream.epoch, expires))
    return stream


def _lives(now: int, row: Stream) -> bool:
    return row.lives(now)
