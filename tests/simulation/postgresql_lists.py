"""Statements of presence and lists, in Python: each does to the model what its SQL does.

The functions have the names of those in `sql/presence.sql` and `sql/lists.sql`,
or of the constant with the statement. They take a transaction and the arguments of the statement.
A reader that is one inner statement is no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import eq
from typing import Any

from realtime.engine.postgresql import lists, presence, seen
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction

STATEMENTS = Statements()


# presence.sql


@STATEMENTS.runs(presence._CHANGE)
def change_presence(t: Transaction, *columns: Sequence[Any]) -> Running:
    changes = [*zip(*columns, strict=True)]
    gone = [
        (channel, client)
        for channel, client, info, _ in changes
        if info is None and t.get("presence", (channel, client)) is not None
    ]
    added = sorted(change for change in changes if change[2] is not None)
    for channel, client, info, lifetime in added:
        yield from t.put("presence", (channel, client), (info, t.now_ms() + lifetime))
    for key in gone:
        yield from t.put("presence", key, None)
    return []


@STATEMENTS.runs(presence._GET)
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
    yield None
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


@STATEMENTS.runs(lists._WITHDRAW)
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


@STATEMENTS.runs(lists._CHANGE)
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
    yield None
    yield from delete_listed(t, lambda of, name, at: (of, at) == (kind, node) and name in removed)
    first, last = (unlisted(t, kind, names, node) for names in (added, removed))
    if most_seen is not None:
        yield from note_seen(t, last, t.now_ms(), most_seen)
    return [(first, last)]


@STATEMENTS.runs(lists._SWEEP)
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


@STATEMENTS.runs(lists._LISTED)
def listed(t: Transaction, names: Sequence[bytes], kind: str) -> list[Row]:
    there = listed_names(t, kind)
    return [(name,) for name in names if name in there]


@STATEMENTS.runs(lists._NAMES)
def names(t: Transaction, kind: str) -> list[Row]:
    return [(name,) for name in listed_names(t, kind)]


@STATEMENTS.runs(lists._SIZE)
def size(t: Transaction, kind: str) -> list[Row]:
    return [(len(listed_names(t, kind)),)]


@STATEMENTS.runs(lists._NAMES_HERE)
def names_here(t: Transaction, node: str, kind: str) -> list[Row]:
    return [(name,) for (of, name, at), _ in t.scan("listed") if (of, at) == (kind, node)]


@STATEMENTS.runs(lists._SIZE_HERE)
def size_here(t: Transaction, node: str, kind: str) -> list[Row]:
    return [(len(names_here(t, node, kind)),)]


@STATEMENTS.runs(lists._KNOW_SWEEP)
def know_sweep(t: Transaction, node: str) -> Running:
    if t.get("swept", node) is not None:
        yield from t.put("swept", node, None)
    return []


@STATEMENTS.runs(seen._USERS)
def seen_users(t: Transaction, most: int) -> list[Row]:
    return list(t.scan("seen"))[:most]


@STATEMENTS.runs(seen._AT)
def seen_at(t: Transaction, name: bytes) -> list[Row]:
    at = t.get("seen", name)
    return [] if at is None else [(at,)]


@STATEMENTS.runs(seen._FORGET)
def forget_seen(t: Transaction, names: Sequence[bytes], times: Sequence[int]) -> Running:
    for name, at in zip(names, times, strict=True):
        for _ in (yield from t.find("seen", name, partial(eq, at))):
            yield from t.put("seen", name, None)
    return []
