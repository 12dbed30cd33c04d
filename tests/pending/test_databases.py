"""What only a database server does: its comparisons, its locks, its times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

import realtime
from realtime.pending import reading, shards
from realtime.pending.models import Pending, Relay, shard_of
from tests.database_server import DatabaseServer, Postgres, tables_on
from tests.pending.changed import beside
from tests.pending.relaying import Relaying, data, operators, relay_all, row, write

pytest_plugins = ["tests.database_fixtures"]

pytestmark = pytest.mark.usefixtures("options")

ALIAS = "server"


class Use(Protocol):
    def __call__(self, server: DatabaseServer) -> str: ...


@pytest.fixture
def use(django_db_blocker: DjangoDbBlocker) -> Iterator[Use]:
    """Give this process the database of a server, with the tables. Returns its alias."""
    with django_db_blocker.unblock(), ExitStack() as used:
        yield lambda server: used.enter_context(tables_on(server, "realtime_pending"))


@pytest.fixture
def database(use: Use, database_server: DatabaseServer) -> str:
    """A server of each kind."""
    return use(database_server)


@pytest.fixture(scope="module")
def postgres_server(
    start_database: Callable[[type[DatabaseServer]], DatabaseServer],
) -> DatabaseServer:
    return start_database(Postgres)


@pytest.fixture
def postgres(use: Use, postgres_server: DatabaseServer) -> str:
    return use(postgres_server)


@pytest.fixture
def relaying() -> Iterator[Relaying]:
    made = Relaying(ALIAS)
    yield made
    made.close()


def same_shard_but_for_case() -> tuple[str, str]:
    names = (f"orders:a{number}" for number in range(10_000))
    return next(
        (name, other)
        for name in names
        if shard_of(name) == shard_of(other := name.replace("a", "A"))
    )


def test_channel_that_waits_holds_up_no_other_name(database: str, relaying: Relaying) -> None:
    """MariaDB takes "A" and "a" for the same, and "a" and "a "."""
    one, other = same_shard_but_for_case()
    reading.next_due(database)
    held = json.dumps(dict.fromkeys([other, one + " "], time.time() + 5))
    Relay.objects.using(database).update(held=held)
    realtime.publish(one, 1, durable=True, using=database)
    realtime.publish(other, 2, durable=True, using=database)

    relaying.look()

    assert data(one) == [1]
    assert data(other) == []


def test_long_and_short_rows_keep_their_order(
    database: str, relaying: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["é" * reading.SHORT, "x", "é" * reading.SHORT, "y"]
    for text in texts:
        realtime.publish("orders:1", text, durable=True, using=database)
    monkeypatch.setattr(reading, "LONG_TOGETHER", 1)
    relaying.look(6)
    assert data("orders:1") == texts


@pytest.mark.parametrize("due", ["infinity", "-infinity", "0044-03-15 BC", "20000-01-01"])
def test_times_of_postgresql_alone_keep_no_row_waiting(
    postgres: str, relaying: Relaying, due: str
) -> None:
    realtime.publish("orders:1", 1, durable=True, using=postgres)
    with connections[postgres].cursor() as cursor:
        cursor.execute("UPDATE realtime_pending SET due = %s", [due])
    realtime.publish("orders:1", 2, durable=True, using=postgres)
    relaying.look()
    assert data("orders:1") == [2]
    assert relaying.counters.failures == 0


def test_process_that_stands_still_loses_its_shards_and_sessions_stay_as_they_were(
    postgres: str,
) -> None:
    names = ("idle_in_transaction_session_timeout", "synchronous_commit")

    def settings() -> list[str]:
        with connections[postgres].cursor() as cursor:
            return [cursor.execute(f"SHOW {name}").fetchone()[0] for name in names]

    reading.next_due(postgres)
    before = settings()
    with shards.taken(postgres, [1], "one"):
        assert settings() == ["1min", "off"]
    assert settings() == before


@pytest.mark.parametrize("created", ["infinity", "-infinity", "0044-03-15 BC", "20000-01-01"])
def test_operators_see_rows_that_were_written_at_times_of_postgresql_alone(
    postgres: str, created: str
) -> None:
    realtime.publish("orders:1", 1, durable=True, using=postgres)
    realtime.publish("orders:2", 2, durable=True, using=postgres)
    Pending.objects.using(postgres).filter(channel="orders:2").update(due=None)
    with connections[postgres].cursor() as cursor:
        cursor.execute("UPDATE realtime_pending SET created = %s", [created])

    overview = operators().overview([postgres])
    parked = [row for row in operators().parked(10) if row.channel == "orders:2"]

    assert (overview.waiting, overview.parked, overview.oldest) == (1, 1, 0.0)
    assert [row.created for row in parked] == [None]


def test_operators_see_when_a_row_was_written(database: str) -> None:
    realtime.publish("orders:2", 2, durable=True, using=database)
    Pending.objects.using(database).update(due=None)
    [written] = Pending.objects.using(database).values_list("created", flat=True)
    parked = [row for row in operators().parked(10) if row.channel == "orders:2"]
    assert [row.created for row in parked] == [written]


@pytest.mark.parametrize(("fields", "waits"), [({}, 2), ({"data": "{"}, 0)], ids=["channel", "row"])
def test_rows_that_share_a_reason_are_parked_together(
    database: str,
    relaying: Relaying,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, str],
    waits: int,
) -> None:
    name = "orders:1" if fields else "gone:1"
    bad = [row(name, **fields) for _ in range(2000)]
    good = name if fields else beside(name)
    write([*bad[:1000], row(good, data="1"), *bad[1000:], row(good, data="2")], database)
    assert relay_all(relaying, monkeypatch) == [name] * waits
    assert data(good) == [1, 2]
    assert (relaying.counters.relayed, relaying.counters.parked) == (2, 2000)


def test_lease_without_an_end_keeps_no_relay_of_postgresql_waiting(
    postgres: str, relaying: Relaying
) -> None:
    relaying.look()
    with connections[postgres].cursor() as cursor:
        cursor.execute("UPDATE realtime_pending_relay SET until = 'infinity'")
    realtime.publish("orders:1", 1, durable=True, using=postgres)
    relaying.look()
    assert data("orders:1") == [1]
