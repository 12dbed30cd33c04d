"""Statements of maps, in Python: each does to the model what its SQL does.

See `postgresql_streams`, and `sql/streams_maps.sql`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from realtime.engine.postgresql import maps, streams
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction
from tests.simulation.postgresql_streams import Stream, lock_stream, publish, use_stream

STATEMENTS = Statements()


class Map(NamedTuple):
    """A row of `map`."""

    id: int
    keeps: bool
    keys: int = 0
    bytes: int = 0


class Entry(NamedTuple):
    """A row of `map_entry`."""

    off: int
    at: int
    record: bytes
    bytes: int
    version: int | None
    version_epoch: bytes | None
    expires: int | None


@STATEMENTS.runs(streams._PUBLISH_CHANGES)
def publish_changes(t: Transaction, *arguments: Any) -> Running:
    *columns, relaxed = arguments
    t.is_relaxed = t.is_relaxed or relaxed
    rows: list[Row] = []
    for row in zip(*columns, strict=True):
        yield None
        checks = json.loads(row[-1]) if row[-1] is not None else {}
        if "change" in checks:
            rows += yield from change_map(t, row[:-1], checks.pop("change"), checks)
        else:
            ((*made,),) = yield from publish(t, *([each] for each in row))
            rows.append((*made, None, None, None, None))
    return rows


def change_map(t: Transaction, row: Row, change: dict[str, Any], checks: dict[str, Any]) -> Running:
    channel, content, uid, size, lifetime, meta, fresh = row
    name, mode, is_put = bytes.fromhex(change["key"]), change.get("mode"), "bytes" in change
    ttl = change.get("ttl") or None
    stream: Stream | None = None
    offset = epoch = None
    if size == 0:
        yield from t.lock("channel", channel)
    else:
        (stream,) = yield from lock_stream(t, channel, fresh, meta)
        offset, epoch = stream.top, stream.epoch + t.timeline
    now = t.now_ms()
    yield None
    found: Map | None = t.get("map", channel)
    if found is not None and stream is not None and found.id != stream.id:
        yield from t.put("map", channel, None)
        for key, _ in t.scan("map_entry"):
            if key[0] == found.id:
                yield from t.put("map_entry", key, None)
        found = None
    entry: Entry | None = None
    if found is None:
        found = Map(t.number("stream") if stream is None else stream.id, size > 0)
    else:
        entry = t.get("map_entry", (found.id, name))
    lives = entry is not None and (entry.expires is None or entry.expires > now)
    more_keys = is_put - (entry is not None)
    more_bytes = change.get("bytes", 0) - (0 if entry is None else entry.bytes)
    used = t.get("once", bytes.fromhex(checks["once"])) if "once" in checks else None
    if used is not None and used[2] <= now:
        used = None
    reason = None
    if used is not None:
        reason = "idempotency"
    elif change.get("offset", off := entry.off if entry else 0) != off or (
        "epoch" in change and epoch is not None and change["epoch"] != epoch
    ):
        reason = "position_mismatch"
    elif _is_older(change, entry):
        reason = "version"
    elif lives and mode in ("if_new", "renew", "if_expired"):
        reason = "key_exists"
    elif (not lives and mode == "if_exists") or (entry is None and not is_put):
        reason = "key_not_found"
    elif is_put and (
        found.keys + more_keys > change["most_keys"]
        or found.bytes + more_bytes > change["most_bytes"]
    ):
        reason = "full"
    if meta > 0 and found.keys + more_keys > 0:
        if (ttl is None and is_put) or (found.keys and (stream is None or stream.expires is None)):
            meta = 0
        else:
            left = stream.expires - now if found.keys and stream and stream.expires else 0
            meta = max(meta, 2 * (ttl or 0), left)
    if reason is not None:
        if used is not None:
            offset, epoch = used[0], used[1] and used[1] + t.timeline
        elif reason == "key_exists" and mode == "renew":
            assert entry is not None
            renewed = entry._replace(expires=now + ttl if ttl else None)
            yield from t.put("map_entry", (found.id, name), renewed)
            if stream is not None and stream.expires is not None:
                expires = now + meta if meta > 0 else None
                yield from t.put("stream", channel, stream._replace(expires=expires))
        current = entry[:3] if entry and reason != "key_not_found" else (None, None, None)
        return [(offset, epoch, False, reason, *current)]
    text = json.dumps(checks) if checks else None
    arguments = (channel, content, uid, size, lifetime, meta, fresh, text)
    ((offset, epoch, kept),) = yield from publish(t, *([each] for each in arguments))
    if is_put:
        made = Entry(
            offset or 0,
            t.get("stream", channel).at if size else now,
            content,
            change["bytes"],
            change.get("version"),
            bytes.fromhex(change["version_epoch"]) if "version" in change else None,
            now + ttl if ttl else None,
        )
        yield from t.put("map_entry", (found.id, name), made)
    else:
        yield from t.put("map_entry", (found.id, name), None)
    if found.keys + more_keys == 0:
        yield from t.put("map", channel, None)
    elif more_keys or more_bytes or found.keeps != (size > 0):
        now_found = Map(found.id, size > 0, found.keys + more_keys, found.bytes + more_bytes)
        yield from t.put("map", channel, now_found)
    return [(offset, epoch, kept, None, None, None, None)]


def _is_older(change: dict[str, Any], entry: Entry | None) -> bool:
    if "version" not in change or entry is None or entry.version is None:
        return False
    epochs = (b"", entry.version_epoch)
    return change["version"] <= entry.version and bytes.fromhex(change["version_epoch"]) in epochs


@STATEMENTS.runs(maps._READ)
def read_map(
    t: Transaction,
    channel: bytes,
    low: bytes,
    high: bytes | None,
    most: int,
    meta: int,
    fresh: str,
    held: int,
) -> Running:
    (stream,) = yield from use_stream(t, channel, meta, fresh, held)
    now = t.now_ms()
    yield None
    row: Stream | None = t.get("stream", channel)
    row = row if row is not None and row.lives(now) else None
    if row is not None:
        stream = row._replace(epoch=row.epoch + t.timeline)
    found: Map | None = t.get("map", channel)
    if found is not None and found.keeps and (row is None or row.id != found.id):
        found = None
    top = stream.top, stream.epoch, found.keys if found else 0
    entries = sorted(
        (key[1], *entry[:3])
        for key, entry in t.scan("map_entry")
        if found is not None and key[0] == found.id
        if key[1] >= low and (high is None or key[1] < high)
    )
    return [(*top, *entry) for entry in entries[:most]] or [(*top, None, None, None, None)]


@STATEMENTS.runs(maps._DUE)
def due(t: Transaction, most: int) -> list[Row]:
    names: dict[int, bytes] = {row.id: channel for channel, row in t.scan("map")}
    ended = [
        (entry.expires, names[key[0]], key[1])
        for key, entry in t.scan("map_entry")
        if key[0] in names and entry.expires is not None and entry.expires <= t.now_ms()
    ]
    return [row[1:] for row in sorted(ended)[:most]]
