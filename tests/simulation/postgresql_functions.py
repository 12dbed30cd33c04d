"""The statements of the engine, in Python: each does to the model what its SQL does.

A function has the name of its function in `sql/*.sql`, or of the constant with its statement; it
takes a transaction, and the arguments of the statement. A reader that is one inner statement is no
generator. `test_postgresql_database` compares them with a real server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from realtime.engine.postgresql import (
    cluster,
    delivery,
    limits,
    listening,
    lists,
    presence,
    rings,
    seen,
    streams,
)
from tests.simulation.postgresql_database import (
    Row,
    Running,
    Statement,
    Transaction,
    failure,
)

DAY = 86_400_000
NO_PARTITION = "23514"

STATEMENTS: dict[str, Statement] = {}
"""What the engine may send, by its text."""


def runs(query: str) -> Callable[[Statement], Statement]:
    """Let a function be a statement of the engine."""

    def put(statement: Statement) -> Statement:
        STATEMENTS[query] = statement
        return statement

    return put


# streams.sql


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


@runs(streams._PUBLISH)
def publish(t: Transaction, *columns: Sequence[Any]) -> Running:
    rows: list[Row] = []
    for channel, record, uid, size, lifetime, meta, fresh, text in zip(*columns, strict=True):
        checks = json.loads(text) if text is not None else {}
        if text is not None:
            yield
            checked = yield from check_publication(t, channel, size, meta, fresh, checks)
            position, refused = checked[0]
            if not refused:
                yield from send(t, checks.get("send", {}))
            if refused or size == 0:
                rows.append((*position, not refused))
                continue
        while True:
            yield
            now = t.now_ms()
            found = yield from t.find("stream", channel, lambda row, now=now: row.lives(now))
            if found:
                break
            yield from begin_stream(t, channel, fresh, meta)
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
        rows.append((stream.top, stream.epoch, True))
    return rows


def send(t: Transaction, content: dict[str, str]) -> Running:
    is_relaxed, end = t.is_relaxed, ""
    if "letter" in content:
        ((number,),) = yield from post(t, [content["letter"].encode()])
        t.is_relaxed, end = is_relaxed, f"{number}]]]"
    if "notify" in content:
        t.notifications[f"{t.now_us()} {content['ring']}{end}"] = None
    return []


def check_publication(
    t: Transaction, channel: bytes, size: int, meta: int, fresh: str, checks: dict[str, Any]
) -> Running:
    key = bytes.fromhex(checks["once"]) if "once" in checks else None
    stream: Stream | None = None
    position: Row = None, None
    if size == 0:
        yield from t.lock("channel", channel)
    else:
        while True:
            found = yield from t.find("stream", channel, lambda row: row.lives(t.now_ms()))
            if found:
                break
            yield from begin_stream(t, channel, fresh, meta)
        stream = found[0]
        position = stream.top, stream.epoch
    now = t.now_ms()
    if key is not None:
        yield
        used = t.get("once", key)
        if used is not None and used[2] > now:
            return [(used[:2], True)]
    if stream is not None:
        other_top = "offset" in checks and checks["offset"] != stream.top
        if other_top or ("epoch" in checks and checks["epoch"] != stream.epoch):
            return [(position, True)]
        version = checks.get("version")
        if version is not None and stream.version is not None and version <= stream.version:
            epoch = bytes.fromhex(checks["version_epoch"])
            if epoch in (b"", stream.version_epoch):
                return [(position, True)]
    if key is not None:
        yield from t.put("once", key, (None, None, now + checks["lifetime"]))
    return [(position, False)]


def use_stream(t: Transaction, channel: bytes, meta: int, fresh: str, held: int) -> Running:
    now = t.now_ms()
    row: Stream | None = t.get("stream", channel)
    if row is None or not row.lives(now):
        if meta == 0:
            return [Stream(0, (yield from first_epoch(t, fresh))[0])]
        yield from begin_stream(t, channel, fresh, min(meta, held))
        return [t.get("stream", channel)]
    if meta > 0 or row.expires is not None:
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
    return [row]


@runs(streams._READ)
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
    yield
    offsets = range(high, low, -1) if backwards else range(low + 1, high + 1)
    for offset in offsets[:most]:
        if (entry := t.get("entry", (stream.id, offset))) is not None:
            at, record, before = entry
            rows.append((offset, None, before, at, record))
    return rows


@runs(streams._POSITIONS)
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
        yield
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


@runs(streams._REMOVE)
def remove(t: Transaction, channel: bytes) -> Running:
    for row in (yield from t.find("stream", channel, lambda _: True)):
        yield from t.put("stream", channel, row._replace(floor=row.top))
    return []


@runs(streams._RENEW)
def renew_epoch(t: Transaction, channel: bytes, lost: str, fresh: str) -> Running:
    found = yield from t.find("stream", channel, lambda row: row.epoch == lost)
    if found:
        yield from t.put("stream", channel, found[0]._replace(epoch=fresh))
        return [(None,)]
    yield
    if t.get("stream", channel) is None:
        for _ in (yield from t.find("setting", "epoch", lambda value: value == lost)):
            yield from t.put("setting", "epoch", fresh)
    return [(None,)]


@runs(delivery._NEWS)
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
        if stream is None or (stream.top, stream.epoch) == (top, epoch):
            continue
        known = top if epoch in ("", stream.epoch) or top < stream.top else 0
        entries = []
        for offset in range(max(stream.floor, known) + 1, stream.top + 1):
            if len(entries) < most and (entry := t.get("entry", (stream.id, offset))) is not None:
                entries.append((channel, stream.top, stream.epoch, offset, entry[1]))
        rows += entries or [(channel, stream.top, stream.epoch, None, None)]
    return rows


@runs(delivery._TOPS)
def tops(t: Transaction, channels: Sequence[bytes]) -> list[Row]:
    rows: list[Row] = []
    for channel in channels:
        stream: Stream | None = t.get("stream", channel)
        lives = stream is not None and stream.lives(t.now_ms())
        rows.append((*((stream.top, stream.epoch) if lives and stream else (0, "")), t.now_us()))
    return rows


@runs(delivery._LOOK)
def look(t: Transaction, channels: Sequence[bytes], tops: Sequence[int]) -> list[Row]:
    found = [
        (channel, t.get("stream", channel), top)
        for channel, top in zip(channels, tops, strict=True)
    ]
    return [(channel,) for channel, row, top in found if row is not None and row.top != top]


@runs(streams._KEEP_HOUSE)
def keep_house(t: Transaction, days: int, fresh: str, waits: bool) -> Running:
    now = t.now_ms()
    today = now // DAY
    if not waits and not t.is_free("keep_house"):
        return [(None,)]
    yield from t.lock("keep_house", seconds=1.0)
    for day in range(today - 1, today + 3):
        if t.get("partition", day) is None:
            yield from t.put("partition", day, True)
    for day, _ in t.scan("partition"):
        if day < today - days:
            yield from t.put("partition", day, None)
            for key, (at, *_) in t.scan("entry"):
                if at // DAY == day:
                    yield from t.put("entry", key, None)
    yield
    cleaned = t.get("setting", "cleaned")
    if cleaned is not None and now - int(cleaned) < 50_000:
        return [(None,)]
    yield from t.put("setting", "cleaned", str(now))
    for number, (at, _) in t.scan("letter"):
        if at <= t.now_us() - 60_000_000:
            yield from t.put("letter", number, None)
    for key, (_, _, expires) in t.scan("once"):
        if expires <= now and t.is_free("once", key):
            yield from t.put("once", key, None)
    yield
    gone = [key for key, row in t.scan("stream") if not row.lives(now) and t.is_free("stream", key)]
    for key in gone:
        yield from t.put("stream", key, None)
    if gone:
        for _ in (yield from t.find("setting", "epoch", lambda _: True)):
            yield from t.put("setting", "epoch", fresh)
    return [(None,)]


# rings and letters


@runs(rings._POST)
def post(t: Transaction, contents: Sequence[bytes]) -> Running:
    t.is_relaxed = True
    yield from t.lock("letters")
    rows: list[Row] = []
    for content in contents:
        number = t.number("letter")
        yield from t.put("letter", number, (t.now_us(), content))
        rows.append((number,))
    return rows


@runs(rings._NOTIFY)
def notify(t: Transaction, schema: str, payloads: Sequence[str]) -> list[Row]:
    t.notifications |= dict.fromkeys(f"{t.now_us()} {payload}" for payload in payloads)
    return [("",)] * len(payloads)


@runs(delivery._LETTER)
def letter(t: Transaction, number: int) -> list[Row]:
    row = t.get("letter", number)
    return [] if row is None else [(row[1],)]


@runs(listening._LAST)
def last_letter(t: Transaction) -> list[Row]:
    return [(max((number for number, _ in t.scan("letter")), default=0),)]


@runs(listening._POLL)
def poll(t: Transaction, last: int) -> list[Row]:
    found = sorted((number, row) for number, row in t.scan("letter") if number > last)
    return [(number, b"%d " % at + ring) for number, (at, ring) in found]


# presence.sql


@runs(presence._CHANGE)
def change_presence(
    t: Transaction,
    removed_channels: Sequence[bytes],
    removed_clients: Sequence[str],
    *added: Sequence[Any],
) -> Running:
    gone = [
        key
        for key in zip(removed_channels, removed_clients, strict=True)
        if t.get("presence", key) is not None
    ]
    for channel, client, info, lifetime in sorted(zip(*added, strict=True)):
        yield from t.put("presence", (channel, client), (info, t.now_ms() + lifetime))
    for key in gone:
        yield from t.put("presence", key, None)
    return []


@runs(presence._GET)
def get_presence(t: Transaction, channel: bytes) -> list[Row]:
    now = t.now_ms()
    return [
        (client, info)
        for (name, client), (info, expires) in t.scan("presence")
        if name == channel and expires > now
    ]


# lists.sql


def renew_lists(t: Transaction, node: str, lifetime: int) -> Running:
    yield from t.put("listing", node, t.now_ms() + lifetime)
    yield
    return [t.get("swept", node) is not None]


def delete_listed(t: Transaction, which: Callable[[str, bytes, str], bool]) -> Running:
    """Return what was deleted."""
    gone = [key for key, _ in t.scan("listed") if which(*key)]
    for key in gone:
        yield from t.put("listed", key, None)
    return gone


def note_seen(t: Transaction, names: Sequence[bytes], at: int, most: int) -> Running:
    if names and len(list(t.scan("seen"))) < most:
        for name in names:
            yield from t.put("seen", name, at)
    return []


def unlisted(t: Transaction, kind: str, names: Sequence[bytes], node: str) -> list[bytes]:
    elsewhere = {name for (of, name, at), _ in t.scan("listed") if of == kind and at != node}
    return [name for name in names if name not in elsewhere]


@runs(lists._WITHDRAW)
def withdraw_lists(t: Transaction, node: str, held: int | None) -> Running:
    yield from t.lock("lists")
    yield from delete_listed(
        t, lambda kind, _, at: at == node and (held is None or kind != "channel_users")
    )
    if held is None:
        if t.get("listing", node) is not None:
            yield from t.put("listing", node, None)
    else:
        yield from renew_lists(t, node, held)
    return [(None,)]


@runs(lists._CHANGE)
def list_names(
    t: Transaction,
    node: str,
    kind: str,
    added: Sequence[bytes],
    removed: Sequence[bytes],
    lifetime: int,
    most_seen: int | None,
) -> Running:
    yield from t.lock("lists")
    if t.get("swept", node) is not None:
        return [(None, None)]
    yield from t.add("listing", node, t.now_ms() + lifetime)
    for name in added:
        yield from t.add("listed", (kind, name, node), True)
    yield
    yield from delete_listed(t, lambda of, name, at: (of, at) == (kind, node) and name in removed)
    first, last = (unlisted(t, kind, names, node) for names in (added, removed))
    if most_seen is not None:
        yield from note_seen(t, last, t.now_ms(), most_seen)
    return [(first, last)]


@runs(lists._CLEAR)
def clear_list(t: Transaction, node: str, kind: str) -> Running:
    yield from t.lock("lists")
    yield from delete_listed(t, lambda of, _, at: (of, at) == (kind, node))
    return [(None,)]


@runs(lists._SWEEP)
def sweep(
    t: Transaction, attempt: str, most: int, remembered: int, most_seen: int | None
) -> Running:
    yield from t.lock("lists")
    last = t.get("last_sweep", True)
    if last is not None and last[0] == attempt:
        return [last[1:]]
    dead = [(node, overdue) for node, overdue in t.scan("listing") if overdue <= t.now_ms()]
    for node, overdue in dead:
        yield from t.put("swept", node, t.now_ms() + remembered)
        for kind in ("channel_users", "users", "channels"):
            taken = [key for key, _ in t.scan("listed") if key[0] == kind and key[2] == node]
            if not taken:
                continue
            for key in taken[:most]:
                yield from t.put("listed", key, None)
            names = unlisted(t, kind, [key[1] for key in taken[:most]], node)
            if kind == "users" and most_seen is not None:
                yield from note_seen(t, names, overdue, most_seen)
            yield from t.put("last_sweep", True, (attempt, kind, names))
            return [(kind, names)]
        for _ in (yield from t.find("listing", node, lambda overdue: overdue <= t.now_ms())):
            yield from t.put("listing", node, None)
    return [(None, None)]


def living(t: Transaction) -> set[str]:
    """Return the nodes whose heartbeats are not overdue."""
    now = t.now_ms()
    return {uid for uid, row in t.scan("node") if row.alive_until > now}


def listed_names(t: Transaction, kind: str) -> dict[bytes, None]:
    alive = living(t)
    return {name: None for (of, name, node), _ in t.scan("listed") if of == kind and node in alive}


@runs(lists._LISTED)
def listed(t: Transaction, names: Sequence[bytes], kind: str) -> list[Row]:
    there = listed_names(t, kind)
    return [(name,) for name in names if name in there]


@runs(lists._NAMES)
def names(t: Transaction, kind: str) -> list[Row]:
    return [(name,) for name in listed_names(t, kind)]


@runs(lists._SIZE)
def size(t: Transaction, kind: str) -> list[Row]:
    return [(len(listed_names(t, kind)),)]


@runs(lists._NAMES_HERE)
def names_here(t: Transaction, node: str, kind: str) -> list[Row]:
    return [(name,) for (of, name, at), _ in t.scan("listed") if (of, at) == (kind, node)]


@runs(lists._SIZE_HERE)
def size_here(t: Transaction, node: str, kind: str) -> list[Row]:
    return [(len(names_here(t, node, kind)),)]


@runs(lists._KNOW_SWEEP)
def know_sweep(t: Transaction, node: str) -> Running:
    if t.get("swept", node) is not None:
        yield from t.put("swept", node, None)
    return []


@runs(seen._USERS)
def seen_users(t: Transaction, most: int) -> list[Row]:
    return list(t.scan("seen"))[:most]


@runs(seen._AT)
def seen_at(t: Transaction, name: bytes) -> list[Row]:
    at = t.get("seen", name)
    return [] if at is None else [(at,)]


@runs(seen._FORGET)
def forget_seen(t: Transaction, names: Sequence[bytes], times: Sequence[int]) -> Running:
    for name, at in zip(names, times, strict=True):
        for _ in (yield from t.find("seen", name, lambda row, at=at: row == at)):
            yield from t.put("seen", name, None)
    return []


# cluster.sql


class NodeRow(NamedTuple):
    """A row of `node`."""

    info: bytes
    alive_until: int
    expires: int
    places_until: int | None = None


@runs(cluster._ANNOUNCE)
def announce(t: Transaction, uid: str, info: bytes, lifetime: int, remembered: int) -> Running:
    overdue, expires = t.now_ms() + lifetime, t.now_ms() + remembered
    yield from t.lock("node", uid)
    row: NodeRow | None = t.get("node", uid)
    places = None if row is None else row.places_until
    yield from t.put("node", uid, NodeRow(info, overdue, expires, places))
    yield
    (swept,) = yield from renew_lists(t, uid, lifetime)
    return [(swept,)]


@runs(cluster._WITHDRAW)
def withdraw(t: Transaction, uid: str) -> Running:
    if t.get("node", uid) is None:
        return []
    yield from t.put("node", uid, None)
    for key in [key for key, _ in t.scan("place") if key[1] == uid]:
        yield from t.put("place", key, None)
    return []


@runs(cluster._STATUSES)
def statuses(t: Transaction) -> list[Row]:
    now = t.now_ms()
    rows = [row for _, row in t.scan("node") if row.expires > now]
    return [(row.info, row.expires - now, row.alive_until > now) for row in rows]


@runs(cluster._ASK)
def ask(t: Transaction, survey: str, lifetime: int) -> Running:
    yield from t.put("survey", survey, t.now_ms() + lifetime)
    return []


@runs(cluster._ANSWER)
def answer(t: Transaction, survey: str, content: bytes) -> Running:
    for _ in (yield from t.find("survey", survey, lambda expires: expires > t.now_ms())):
        yield from t.put("answer", (survey, t.number("answer")), content)
    return []


@runs(cluster._ANSWERS)
def answers(t: Transaction, survey: str, start: int) -> list[Row]:
    expires = t.get("survey", survey)
    if expires is None or expires <= t.now_ms():
        return []
    given = sorted((key[1], content) for key, content in t.scan("answer") if key[0] == survey)
    return [(content,) for _, content in given[start:]]


@runs(cluster._CLAIM)
def claim_name(t: Transaction, name: bytes, node: str, lifetime: int) -> Running:
    if lifetime == 0:
        for _ in (
            yield from t.find("owner", name, lambda row: row[0] == node or row[1] <= t.now_ms())
        ):
            yield from t.put("owner", name, None)
        yield
        row = t.get("owner", name)
        return [(node if row is None else row[0],)]
    expires = t.now_ms() + lifetime
    yield from t.lock("owner", name)
    row = t.get("owner", name)
    if row is None or row[0] == node or row[1] <= t.now_ms():
        yield from t.put("owner", name, (node, expires))
    return [(t.get("owner", name)[0],)]


@runs(cluster._OWNER)
def owner(t: Transaction, name: bytes) -> list[Row]:
    row = t.get("owner", name)
    return [] if row is None or row[1] <= t.now_ms() else [(row[0],)]


@runs("SELECT 1")
def one(t: Transaction) -> list[Row]:
    return [(1,)]


# expiry.sql

EXPIRY: dict[str, Callable[[Any], int]] = {
    "presence": lambda row: row[1],
    "survey": lambda row: row,
    "owner": lambda row: row[1],
    "swept": lambda row: row,
    "node": lambda row: row.expires,
}


@runs(cluster._REMOVE_EXPIRED)
def remove_expired(t: Transaction, most: int) -> Running:
    largest = 0
    for table, expires in EXPIRY.items():
        yield
        now = t.now_ms()
        gone = [key for key, row in t.scan(table) if expires(row) <= now and t.is_free(table, key)]
        largest = max(largest, len(gone[:most]))
        for key in gone[:most]:
            yield from t.put(table, key, None)
            if table == "survey":
                for answer in [each for each, _ in t.scan("answer") if each[0] == key]:
                    yield from t.put("answer", answer, None)
    limit = t.now_ms() // 1000 - 3600
    debts = [key for key, ends in t.scan("debt") if ends < limit and t.is_free("debt", key)]
    nodes = {uid for uid, _ in t.scan("node")}
    places = [key for key, _ in t.scan("place") if key[1] not in nodes and t.is_free("place", key)]
    for table, keys in (("debt", debts), ("place", places)):
        largest = max(largest, len(keys[:most]))
        for key in keys[:most]:
            yield from t.put(table, key, None)
    return [(largest,)]


# limits.sql


@runs(limits._BLOCK)
def block_users(
    t: Transaction,
    names: Sequence[bytes],
    entries: Sequence[bytes],
    until: Sequence[float],
    most: int,
) -> Running:
    yield from t.lock("blocks")
    now = t.now_ms() * 1000
    unblocked = {name for name, ends in zip(names, until, strict=True) if ends == 0}
    for name, (_, ends) in t.scan("blocked"):
        if ends * 1_000_000 <= now or name in unblocked:
            yield from t.put("blocked", name, None)
    before = {name for name, _ in t.scan("blocked")}
    room, number = most - len(before), 0
    for name, entry, ends in zip(names, entries, until, strict=True):
        if ends <= 0:
            continue
        if name not in before:
            room -= 1
        if name in before or room >= 0:
            number += 1
            yield from t.put("blocked", name, (entry, ends))
    made, changed = t.get("block_list", True) or (None, None)
    if number or 0 in until:
        made, changed = (now, now) if made is None else (made, max(now, changed + 1))
        yield from t.put("block_list", True, (made, changed))
    return [(number, made, changed)]


@runs(limits._BLOCKED)
def blocked_users(t: Transaction, known_made: int | None, known_changed: int | None) -> list[Row]:
    made, changed = t.get("block_list", True) or (None, None)
    if (known_made, known_changed) == (made, changed):
        return [(made, changed, None)]
    now = t.now_ms()
    entries = [entry for _, (entry, ends) in t.scan("blocked") if ends * 1000 > now]
    return [(made, changed, entries)]


@runs(limits._ADD_DEBTS)
def add_debts(
    t: Transaction,
    names: Sequence[bytes],
    taken: Sequence[float],
    most: Sequence[float],
    elapsed: float,
) -> Running:
    now = t.now_ms() / 1000.0
    lasting = [0.0] * len(names)
    for name, place in sorted((name, place) for place, name in enumerate(names)):
        yield
        yield from t.lock("debt", name)
        ends = max(t.get("debt", name) or 0.0, now - elapsed) + taken[place]
        ends = min(ends, now + most[place])
        yield from t.put("debt", name, ends)
        lasting[place] = max(0.0, ends - now)
    return [(lasting,)]


@runs(limits._PLACE)
def place_connections(
    t: Transaction,
    node: str,
    names: Sequence[bytes],
    connections: Sequence[int],
    most: int,
    clears: bool,
) -> Running:
    yield from t.lock("places")
    own: NodeRow | None = next(iter((yield from t.find("node", node, lambda _: True))), None)
    now = t.now_ms()
    is_alive = own is not None and own.alive_until > now
    has_places = own is not None and (own.places_until or 0) > now
    if clears or not (is_alive and has_places):
        for key in [key for key, _ in t.scan("place") if key[1] == node]:
            yield from t.put("place", key, None)
    if own is None or not is_alive:
        return [(None, None, None)]
    yield from t.put("node", node, own._replace(places_until=own.alive_until))
    counting = {
        uid
        for uid, row in t.scan("node")
        if row.alive_until > now and (row.places_until or 0) > now
    }
    here, elsewhere = [], []
    for name, count in zip(names, connections, strict=True):
        others = sum(
            number
            for (of, at), number in t.scan("place")
            if of == name and at != node and at in counting
        )
        before = t.get("place", (name, node)) or 0
        number = min(count, max(0, before, most - others))
        here.append(number)
        elsewhere.append(others)
        if number:
            yield from t.put("place", (name, node), number)
        elif before:
            yield from t.put("place", (name, node), None)
    users = len([key for key, _ in t.scan("place") if key[1] == node])
    return [(users, here, elsewhere)]
