"""The model of PostgreSQL answers as the real server does, statement by statement."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from realtime.engine.postgresql import (
    cluster,
    delivery,
    limits,
    listening,
    lists,
    maps,
    presence,
    rings,
    seen,
    streams,
)
from realtime.engine.postgresql.schema import create, quoted
from realtime.pending import within
from tests.database_server import DatabaseServer, QuickPostgres
from tests.simulation.postgresql_database import Database
from tests.simulation.postgresql_server import STATEMENTS

ROUNDS = 500
CHANNELS = [b"a", b"b", b"c"]
NODES = ["N1", "N2", "N3"]
MODES = ["", "", "", "if_new", "if_exists", "if_expired", "renew"]
WORDS = [b"one", b"two", b"three", b"four"]
START = 1_700_000_000_000
"""Unix ms: where both clocks stand, until a draw moves them."""

STANDING = """
CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT coalesce((SELECT value::bigint FROM {schema}.setting WHERE name = 'test_now'), 0) $$;
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT {schema}.now_ms() * 1000 $$;
CREATE OR REPLACE FUNCTION {schema}.timeline() RETURNS text LANGUAGE sql STABLE AS
$$ SELECT coalesce((SELECT value FROM {schema}.setting WHERE name = 'test_timeline'), '') $$;
"""
SET = """
INSERT INTO {schema}.setting VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


UNORDERED = {
    lists._LISTED,
    lists._NAMES,
    lists._NAMES_HERE,
    presence._GET,
    cluster._STATUSES,
    seen._USERS,
    delivery._LOOK,
    within._USED,
    maps._DUE,
}


class Draw:
    """Draws statements of the engine with their arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = START
        self.epochs = ["old"]
        """Those that streams have, or had."""
        self.times = [START]

    def some(self, of: list[Any]) -> list[Any]:
        return sorted(self.random.sample(of, self.random.randint(0, len(of))))

    def epoch(self) -> str:
        return f"{self.random.getrandbits(32):x}"

    def checks(self) -> str | None:
        chance = self.random
        checks: dict[str, Any] = {}
        if chance.random() < 0.4:
            checks |= {"once": chance.choice(WORDS).hex(), "lifetime": chance.choice((900, 90_000))}
        if chance.random() < 0.3:
            checks |= {"offset": chance.randrange(6)}
            if chance.random() < 0.3:
                checks["epoch"] = chance.choice(("", "other", *self.epochs))
        if chance.random() < 0.3:
            checks |= {"version": chance.randrange(9), "version_epoch": chance.choice(("", "aa"))}
        return json.dumps(checks) if checks else None

    def statement(self) -> tuple[str, tuple[Any, ...]]:
        chance = self.random
        meta, held, fresh = chance.choice((0, 0, 50_000)), 20_000, self.epoch()
        channel, node, word = chance.choice(CHANNELS), chance.choice(NODES), chance.choice(WORDS)
        kind = chance.choice(("channels", "users", "channel_users"))
        kinds: list[tuple[str, tuple[Any, ...]]] = [
            *[self._publish(meta) for _ in range(5)],
            *[self._change(meta) for _ in range(8)],
            (
                maps._READ,
                (
                    *(channel, chance.choice((b"", *WORDS)), chance.choice((None, b"three"))),
                    *(chance.randrange(4), meta, fresh, held),
                ),
            ),
            (maps._DUE, (99,)),
            (
                streams._READ,
                (
                    *(channel, chance.choice((None, 0, 1, 3, 9)), chance.choice((None, 0, 2))),
                    *(chance.random() < 0.5, meta, fresh, held),
                ),
            ),
            (
                streams._POSITIONS,
                (CHANNELS, chance.choice((None, self.now - 3000)), meta, ["x", "y", "z"], held),
            ),
            (streams._REMOVE, (channel,)),
            (within._USED, (self.some(WORDS),)),
            (streams._RENEW, (channel, chance.choice(self.epochs), fresh)),
            (streams._KEEP_HOUSE, (3, fresh, chance.random() < 0.5)),
            (
                delivery._NEWS,
                (
                    CHANNELS,
                    [chance.randrange(9) for _ in CHANNELS],
                    [chance.choice(("", *self.epochs)) for _ in CHANNELS],
                    chance.choice((2, 200)),
                ),
            ),
            (delivery._TOPS, (CHANNELS,)),
            (delivery._LOOK, (CHANNELS, [chance.randrange(6) for _ in CHANNELS])),
            (rings._POST, ([word, b"{}"],)),
            (delivery._LETTER, (chance.randrange(5),)),
            (listening._LAST, ()),
            (listening._NEWEST, ()),
            (listening._POLL, (chance.randrange(9),)),
            self._presence(),
            (presence._GET, (channel,)),
            (lists._CHANGE, (node, kind, *self._two(WORDS), 9000, chance.choice((None, 3)))),
            (lists._CHANGE, (node, kind, self.some(WORDS), [], 9000, None)),
            (lists._SWEEP, (self.epoch(), 99, 30_000, None)),
            (lists._LISTED, (WORDS, kind)),
            (lists._NAMES, (kind,)),
            (lists._SIZE, (kind,)),
            (lists._SIZE_HERE, (node, kind)),
            (lists._NAMES_HERE, (node, kind)),
            (lists._KNOW_SWEEP, (node,)),
            (lists._WITHDRAW, (node, chance.choice((None, 5000)))),
            (seen._USERS, (9,)),
            (seen._AT, (word,)),
            (seen._FORGET, ([word], [chance.choice(self.times)])),
            (cluster._ANNOUNCE, (node, word, 8000, 20_000)),
            (cluster._ANNOUNCE, (node, word, 8000, 20_000)),
            (cluster._WITHDRAW, (node,)),
            (cluster._STATUSES, ()),
            (cluster._ASK, (self.epoch(), 5000)),
            (cluster._ANSWERS, ("survey", chance.randrange(3))),
            (cluster._ANSWER, ("survey", word)),
            (cluster._CLAIM, (word, node, chance.choice((0, 3000)))),
            (cluster._OWNER, (word,)),
            (cluster._REMOVE_EXPIRED, (99,)),
            self._blocks(),
            (limits._BLOCKED, chance.choice(((None, None), (1, 2)))),
            (
                limits._ADD_DEBTS,
                (self.some(WORDS), [2.0, 0.5, 3.0, 1.0], [4.0] * 4, 0.25),
            ),
            (
                limits._PLACE,
                (node, self.some(WORDS), [3, 0, 1, 2], 3, chance.random() < 0.1),
            ),
        ]
        query, arguments = chance.choice(kinds)
        if query in (limits._ADD_DEBTS, limits._PLACE):  # columns of one length
            length = len(arguments[0 if query == limits._ADD_DEBTS else 1])
            cut = [each[:length] if isinstance(each, list) else each for each in arguments]
            arguments = tuple(cut)
        return query, arguments

    def _two(self, of: list[Any]) -> tuple[list[Any], list[Any]]:
        chosen = self.some(of)
        return chosen[::2], chosen[1::2]

    def _publish(self, meta: int) -> tuple[str, tuple[Any, ...]]:
        chance = self.random
        channels = self.some(CHANNELS)
        rows = [
            (
                channel,
                b"record %d" % chance.randrange(99),
                b"u%d" % chance.randrange(99),
                chance.choice((2, 5)),
                chance.choice((2000, 60_000)),
                meta,
                self.epoch(),
                self.checks(),
            )
            for channel in channels
        ]
        if chance.random() < 0.2:  # without history, which keys and maps ask for
            sent = chance.choice(({"letter": "x"}, {"notify": "n", "ring": "r", "letter": "x"}))
            asked = {"once": chance.choice(WORDS).hex(), "lifetime": 900, "send": sent}
            checks = json.dumps(asked)
            rows = [(*row[:3], 0, *row[4:7], checks) for row in rows]
        columns = [[*column] for column in zip(*rows, strict=True)] or [[] for _ in range(8)]
        return streams._PUBLISH, (*columns, chance.random() < 0.2)

    def _change(self, meta: int) -> tuple[str, tuple[Any, ...]]:
        """Publish, with changes of maps among the publications."""
        chance = self.random
        query, (*columns, texts, relaxed) = self._publish(meta)
        changed: list[str | None] = []
        for size, text in zip(columns[3], texts, strict=True):
            if chance.random() < 0.1:
                changed.append(text)
                continue
            checks = json.loads(text or "{}")
            names = ("offset", "epoch", "version", "version_epoch")
            change = {name: checks.pop(name) for name in names if name in checks}
            change |= {"key": chance.choice(WORDS).hex(), "mode": chance.choice(MODES)}
            if chance.random() < 0.7:
                change |= {"bytes": chance.randrange(1, 9), "ttl": chance.choice((0, 900, 40_000))}
                change |= {"most_keys": 3, "most_bytes": 20}
            if size == 0 and "send" not in checks:
                checks["send"] = {"letter": "y"}
            changed.append(json.dumps(checks | {"change": change}))
        return query, (*columns, changed, relaxed)

    def _presence(self) -> tuple[str, tuple[Any, ...]]:
        clients, removed = self._two(["c1", "c2", "c3", "c4"])
        channel = self.random.choice(CHANNELS)
        infos = [b"info"] * len(clients) + [None] * len(removed)
        channels, lifetimes = [channel] * len(infos), [4000] * len(infos)
        return presence._CHANGE, (channels, [*clients, *removed], infos, lifetimes)

    def _blocks(self) -> tuple[str, tuple[Any, ...]]:
        names = self.some(WORDS)
        ends = [self.random.choice((0.0, self.now / 1000 + 4)) for _ in names]
        return limits._BLOCK, (names, [b"entry"] * len(names), ends, 2)


class Real:
    """A real server with the tables of the engine, and a clock that stands."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        create(connection, schema)
        connection.execute(self._text(STANDING))

    def _text(self, query: str) -> str:
        return query.replace("{schema}", quoted(self._schema))

    def move(self, now: int) -> None:
        self._connection.execute(self._text(SET), ["test_now", str(now)])

    def promote(self, timeline: int) -> None:
        self._connection.execute(self._text(SET), ["test_timeline", f"-{timeline:X}"])

    def answer(self, query: str, arguments: tuple[Any, ...]) -> Any:
        try:
            cursor = self._connection.execute(self._text(query), arguments, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            return error.sqlstate


@pytest.fixture
def real(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer], unique: str
) -> Iterator[Real]:
    with start_database(QuickPostgres).connect() as connection:
        connection.autocommit = True
        yield Real(connection, unique)


def test_each_statement_of_the_engine_is_drawn() -> None:
    draw = Draw(0)
    drawn = {draw.statement()[0] for _ in range(5000)}
    assert STATEMENTS.keys() - drawn <= {rings._NOTIFY, "SELECT 1"}


@pytest.mark.parametrize("seed", range(4))
def test_statements(real: Real, seed: int) -> None:
    draw = Draw(seed)
    database = Database(lambda: draw.now / 1000)
    real.move(draw.now)

    def check(query: str, arguments: tuple[Any, ...]) -> Any:
        expected = comparable(query, real.answer(query, arguments))
        assert model_of(database, query, arguments) == expected, (query, arguments)
        return expected

    check(cluster._ASK, ("survey", 60_000))
    check(streams._KEEP_HOUSE, (3, "first", True))
    for _ in range(ROUNDS):
        if draw.random.random() < 0.1:
            draw.now += draw.random.choice((1, 500, 5000, 70_000))
            real.move(draw.now)
        if draw.random.random() < 0.02:
            database.timeline += draw.random.choice((1, 9))
            real.promote(database.timeline)
        query, arguments = draw.statement()
        if query == lists._SWEEP:
            assert swept(lambda *call: model_of(database, *call)) == swept(real.answer)
            continue
        answer = check(query, arguments)
        if query == streams._POSITIONS:
            draw.epochs = [epoch for _, epoch in answer]
            draw.times.append(draw.now)


def swept(answer: Callable[[str, tuple[Any, ...]], Any]) -> set[tuple[str, bytes]]:
    """Sweep all nodes that died, in any order. Return the kinds and names that are reported."""
    reported: set[tuple[str, bytes]] = set()
    for attempt in itertools.count():
        arguments = str(attempt), 2, 30_000, None
        ((kind, names),) = answer(lists._SWEEP, arguments)
        if not kind:
            return reported
        assert {*answer(lists._SWEEP, arguments)[0][1]} == {*names}
        reported |= {(kind, name) for name in names}
    raise AssertionError


def model_of(database: Database, query: str, arguments: tuple[Any, ...]) -> Any:
    """Return what the model answers."""
    try:
        return comparable(query, database.execute(STATEMENTS[query], *arguments))
    except psycopg.Error as error:
        return error.sqlstate


def comparable(query: str, reply: Any) -> Any:
    """Return a reply in one form: some rows, and names in them, have no order of their own."""
    if not isinstance(reply, list):
        return reply
    rows = [tuple(map(_in_order, row)) for row in reply]
    return sorted(rows) if query in UNORDERED else rows


def _in_order(value: Any) -> Any:
    if value in (None, "", b""):
        return ""  # of a function that returns nothing
    is_names = isinstance(value, list) and value and isinstance(value[0], bytes)
    return sorted(value) if is_names else value
