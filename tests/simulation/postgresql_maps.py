"""Maps, in Python: each function does to the model what its SQL does.

See `postgresql_streams`, and `sql/streams_maps.sql`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from realtime.engine.postgresql import maps
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction
from tests.simulation.postgresql_streams import Stream, use_stream

STATEMENTS = Statements()


class Map(NamedTuple):
    """A row of `map`."""

    id: int
    keeps: bool
    keys: int = 0
    size: int = 0


class Entry(NamedTuple):
    """A row of `map_entry`."""

    off: int
    at: int
    record: bytes
    size: int
    version: int | None
    version_epoch: bytes | None
    expires: int | None


class Begun(NamedTuple):
    """What `begin_change` returns."""

    position: Row
    reason: str | None
    id: int
    entry: Row
    meta: int


def begin_change(
    t: Transaction, channel: bytes, stream: Stream | None, meta: int, checks: dict[str, Any]
) -> Running:
    """`stream`: it is locked; None: the channel is."""
    change = checks["change"]
    name, mode, is_put = bytes.fromhex(change["key"]), change.get("mode"), "bytes" in change
    ttl = change.get("ttl") or None
    position: Row = (stream.top, stream.epoch + t.timeline) if stream else (None, None)
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
        row = Map(t.number("stream") if stream is None else stream.id, stream is not None)
    else:
        row = found
        entry = t.get("map_entry", (row.id, name))
    lives = entry is not None and (entry.expires is None or entry.expires > now)
    keys = row.keys + is_put - (entry is not None)
    size = row.size + change.get("bytes", 0) - (0 if entry is None else entry.size)
    used = t.get("once", bytes.fromhex(checks["once"])) if "once" in checks else None
    reason = None
    if used is not None and used[2] > now:
        reason = "idempotency"
    elif _is_other(change, entry, position[1]):
        reason = "position_mismatch"
    elif _is_older(change, entry):
        reason = "version"
    elif lives and mode in ("if_new", "renew", "if_expired"):
        reason = "key_exists"
    elif (not lives and mode == "if_exists") or (entry is None and not is_put):
        reason = "key_not_found"
    elif is_put and (keys > change["most_keys"] or size > change["most_bytes"]):
        reason = "full"
    if meta > 0 and keys > 0:
        expires = stream.expires if stream and row.keys else None
        if (is_put and ttl is None) or (row.keys and expires is None):
            meta = 0
        else:
            meta = max(meta, 2 * (ttl or 0), expires - now if expires is not None else 0)
    if reason is not None:
        if reason == "idempotency":
            assert used is not None
            position = used[0], used[1] and used[1] + t.timeline
        elif reason == "key_exists" and mode == "renew":
            assert entry is not None
            renewed = entry._replace(expires=now + ttl if ttl else None)
            yield from t.put("map_entry", (row.id, name), renewed)
            if stream is not None and stream.expires is not None:
                longer = now + meta if meta > 0 else None
                yield from t.put("stream", channel, stream._replace(expires=longer))
        shown = (None,) * 3 if entry is None or reason == "key_not_found" else entry[:3]
        return Begun(position, reason, row.id, shown, meta)
    if "once" in checks:
        key = bytes.fromhex(checks["once"])
        yield from t.put("once", key, (None, None, now + checks["lifetime"]))
    if not is_put:
        yield from t.put("map_entry", (row.id, name), None)
    changed = Map(row.id, stream is not None, keys, size)
    if keys == 0:
        yield from t.put("map", channel, None)
    elif changed != found:
        yield from t.put("map", channel, changed)
    return Begun(position, None, row.id, (None,) * 3, meta)


def _is_other(change: dict[str, Any], entry: Entry | None, epoch: str | None) -> bool:
    """Return whether the last change of a key has another position than the expected one."""
    if "offset" not in change:
        return False
    if change["offset"] != (0 if entry is None else entry.off):
        return True
    return epoch is not None and change.get("epoch", epoch) != epoch


def _is_older(change: dict[str, Any], entry: Entry | None) -> bool:
    if "version" not in change or entry is None or entry.version is None:
        return False
    epochs = (b"", entry.version_epoch)
    return change["version"] <= entry.version and bytes.fromhex(change["version_epoch"]) in epochs


def put_entry(
    t: Transaction, number: int, change: dict[str, Any], offset: int, at: int, record: bytes
) -> Running:
    made = Entry(
        offset,
        at,
        record,
        change["bytes"],
        change.get("version"),
        bytes.fromhex(change["version_epoch"]) if "version" in change else None,
        at + change["ttl"] if change["ttl"] else None,
    )
    yield from t.put("map_entry", (number, bytes.fromhex(change["key"])), made)
    return []


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
