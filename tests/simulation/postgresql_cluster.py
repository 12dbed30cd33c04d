"""Statements of the cluster and of limits, in Python: each does to the model what its SQL does.

The functions have the names of those in `sql/cluster.sql`, `sql/expiry.sql` and `sql/limits.sql`,
or of the constant with the statement. They take a transaction and the arguments of the statement.
A reader that is one inner statement is no generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from realtime.engine.postgresql import cluster, limits
from tests.simulation.postgresql_database import Row, Running, Statements, Transaction
from tests.simulation.postgresql_lists import renew_lists

STATEMENTS = Statements()


# cluster.sql


class NodeRow(NamedTuple):
    """A row of `node`."""

    info: bytes
    alive_until: int
    expires: int
    places_until: int | None = None


@STATEMENTS.runs(cluster._ANNOUNCE)
def announce(t: Transaction, uid: str, info: bytes, lifetime: int, remembered: int) -> Running:
    overdue, expires = t.now_ms() + lifetime, t.now_ms() + remembered
    yield from t.lock("node", uid)
    row: NodeRow | None = t.get("node", uid)
    places = None if row is None else row.places_until
    yield from t.put("node", uid, NodeRow(info, overdue, expires, places))
    yield None
    (swept,) = yield from renew_lists(t, uid, lifetime)
    return [(swept,)]


@STATEMENTS.runs(cluster._WITHDRAW)
def withdraw(t: Transaction, uid: str) -> Running:
    if t.get("node", uid) is None:
        return []
    yield from t.put("node", uid, None)
    for key in [key for key, _ in t.scan("place") if key[1] == uid]:
        yield from t.put("place", key, None)
    return []


@STATEMENTS.runs(cluster._STATUSES)
def statuses(t: Transaction) -> list[Row]:
    now = t.now_ms()
    rows = [row for _, row in t.scan("node") if row.expires > now]
    return [(row.info, row.expires - now, row.alive_until > now) for row in rows]


@STATEMENTS.runs(cluster._ASK)
def ask(t: Transaction, survey: str, lifetime: int) -> Running:
    yield from t.put("survey", survey, t.now_ms() + lifetime)
    return []


@STATEMENTS.runs(cluster._ANSWER)
def answer(t: Transaction, survey: str, content: bytes) -> Running:
    for _ in (yield from t.find("survey", survey, lambda expires: expires > t.now_ms())):
        yield from t.put("answer", (survey, t.number("answer")), content)
    return []


@STATEMENTS.runs(cluster._ANSWERS)
def answers(t: Transaction, survey: str, start: int) -> list[Row]:
    expires = t.get("survey", survey)
    if expires is None or expires <= t.now_ms():
        return []
    given = sorted((key[1], content) for key, content in t.scan("answer") if key[0] == survey)
    return [(content,) for _, content in given[start:]]


@STATEMENTS.runs(cluster._CLAIM)
def claim_name(t: Transaction, name: bytes, node: str, lifetime: int) -> Running:
    if lifetime == 0:
        for _ in (
            yield from t.find("owner", name, lambda row: row[0] == node or row[1] <= t.now_ms())
        ):
            yield from t.put("owner", name, None)
        yield None
        row = t.get("owner", name)
        return [(node if row is None else row[0],)]
    expires = t.now_ms() + lifetime
    yield from t.lock("owner", name)
    row = t.get("owner", name)
    if row is None or row[0] == node or row[1] <= t.now_ms():
        yield from t.put("owner", name, (node, expires))
    return [(t.get("owner", name)[0],)]


@STATEMENTS.runs(cluster._OWNER)
def owner(t: Transaction, name: bytes) -> list[Row]:
    row = t.get("owner", name)
    return [] if row is None or row[1] <= t.now_ms() else [(row[0],)]


@STATEMENTS.runs("SELECT 1")
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


@STATEMENTS.runs(cluster._REMOVE_EXPIRED)
def remove_expired(t: Transaction, most: int) -> Running:
    largest = 0
    for table, expires in EXPIRY.items():
        yield None
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


@STATEMENTS.runs(limits._BLOCK)
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
        made, changed = (now, now) if made is None else (made, max(now, (changed or 0) + 1))
        yield from t.put("block_list", True, (made, changed))
    return [(number, made, changed)]


@STATEMENTS.runs(limits._BLOCKED)
def blocked_users(t: Transaction, known_made: int | None, known_changed: int | None) -> list[Row]:
    made, changed = t.get("block_list", True) or (None, None)
    if (known_made, known_changed) == (made, changed):
        return [(made, changed, None)]
    now = t.now_ms()
    entries = [entry for _, (entry, ends) in t.scan("blocked") if ends * 1000 > now]
    return [(made, changed, entries)]


@STATEMENTS.runs(limits._ADD_DEBTS)
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
        yield None
        yield from t.lock("debt", name)
        ends = max(t.get("debt", name) or 0.0, now - elapsed) + taken[place]
        ends = min(ends, now + most[place])
        yield from t.put("debt", name, ends)
        lasting[place] = max(0.0, ends - now)
    return [(lasting,)]


@STATEMENTS.runs(limits._PLACE)
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
