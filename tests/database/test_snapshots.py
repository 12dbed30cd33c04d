"""Positions of pages that come from the snapshot of the page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template

import realtime
from realtime.config import site_databases
from realtime.pages import page_positions, positions
from realtime.pages.middleware import PositionMiddleware
from realtime.pending.models import Pending
from realtime.server_api.arguments import Position
from realtime.serving import serving
from tests.pending.relaying import Relaying
from tests.site_database import SITE, SiteDatabase

pytest_plugins = ["tests.database_fixtures"]

ORDERS = {
    "name": "orders",
    "history_size": 100_000,
    "history_lifetime": 300,
    "force_recovery": True,
}


@pytest.fixture
def site(site_database: SiteDatabase) -> Iterator[SiteDatabase]:
    """A database with the tables, and a table of the site."""
    site_database.options["namespaces"] = [ORDERS]
    site_database.override()
    site_database.migrate()
    site_database.keep_house()
    site_database.execute("DROP TABLE IF EXISTS numbers")  # of another test
    site_database.execute("CREATE TABLE numbers (channel text PRIMARY KEY, n integer NOT NULL)")
    page_positions._reader._retry_at = 0.0
    yield site_database
    site_database.execute("DROP TABLE numbers")


@contextmanager
def isolated(level: str) -> Iterator[Any]:
    """A transaction of the site. Yields its cursor."""
    with transaction.atomic(using=SITE), connections[SITE].cursor() as cursor:
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        yield cursor


def snapshot() -> Any:
    return isolated("REPEATABLE READ")


def page() -> HttpRequest:
    request = HttpRequest()
    page_positions.note_begin(request)
    return request


def position(channel: str) -> Position | None:
    return positions(page(), [channel])[channel]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_positions_are_those_of_the_snapshot(site: SiteDatabase, level: str) -> None:
    first = realtime.publish("orders:1", 1)
    with isolated(level) as cursor:
        cursor.execute("SELECT 1 FROM numbers")
        second = realtime.publish("orders:1", 2, on_commit=False)
        assert position("orders:1") == first
    with isolated(level):
        assert position("orders:1") == second


def test_nothing_is_written_in_the_transaction_of_the_caller(site: SiteDatabase) -> None:
    realtime.publish("orders:1", 1)
    with snapshot() as cursor:
        assert None not in positions(page(), ["orders:1", "orders:2"]).values()
        cursor.execute("SELECT pg_current_xact_id_if_assigned()::text")
        assert cursor.fetchone() == (None,)
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"
            " AND mode NOT IN ('AccessShareLock', 'ExclusiveLock')"
        )
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("meta_ttl", [0, 1_000_000])
def test_channel_without_a_stream_recovers_what_comes(site: SiteDatabase, meta_ttl: int) -> None:
    site.override(database_history_meta_ttl=meta_ttl)
    with snapshot() as cursor:
        cursor.execute("SELECT 1 FROM numbers")
        realtime.publish("orders:1", 1, on_commit=False)  # the page does not see it
        begun = position("orders:1")
        empty = position("orders:2")
    realtime.publish("orders:2", 2)
    assert begun is not None
    assert empty is not None
    assert [each["data"] for each in realtime.history("orders:1", since=begun)] == [1]
    assert [each["data"] for each in realtime.history("orders:2", since=empty)] == [2]


@pytest.mark.parametrize(
    "options",
    [
        {"database_history_meta_ttl": 1_000_000},
        {"database_history_meta_ttl": 0, "namespaces": [ORDERS | {"history_meta_ttl": 1_000_000}]},
    ],
    ids=["engine", "channel"],
)
def test_stream_that_expires_is_kept_for_longer(
    site: SiteDatabase, options: dict[str, Any]
) -> None:
    site.override(**options)
    realtime.publish("orders:1", 1)
    site.execute("UPDATE {schema}.stream SET expires = {schema}.now_ms() + 5000")
    with snapshot():
        assert position("orders:1") is not None
    ((left,),) = site.execute("SELECT expires - {schema}.now_ms() FROM {schema}.stream")
    assert left > 900_000_000


def test_without_a_snapshot_positions_are_those_of_the_beginning(site: SiteDatabase) -> None:
    request = page()
    realtime.publish("orders:1", 1)
    with isolated("READ COMMITTED"):
        found = positions(request, ["orders:1"])["orders:1"]
    assert found is not None
    assert found.offset == 0
    request = page()
    found = positions(request, ["orders:1"])["orders:1"]
    assert found is not None
    assert found.offset == 0  # page_margin


def test_transaction_goes_on_where_positions_cannot_be_read(site: SiteDatabase) -> None:
    site.execute("ALTER TABLE {schema}.stream RENAME TO other")
    with snapshot() as cursor:
        assert position("orders:1") is None
        cursor.execute("SELECT 7")
        assert cursor.fetchone() == (7,)


def test_tags_write_the_positions_of_the_snapshot(site: SiteDatabase) -> None:
    """Not a time for the middleware, which reads when the transaction is over."""
    first = realtime.publish("orders:1", 1)
    assert first is not None

    def view(request: HttpRequest) -> HttpResponse:
        template = Template('{% load realtime %}{% realtime_channel "orders:1" %}')
        with snapshot() as cursor:
            cursor.execute("SELECT 1 FROM numbers")
            realtime.publish("orders:1", 2, on_commit=False)
            return HttpResponse(template.render(Context({"request": request})))

    response = PositionMiddleware(view)(HttpRequest())
    assert f'"offset": {first.offset}, "epoch": "{first.epoch}"' in response.content.decode()


def test_engine_in_another_database_has_no_snapshot(site: SiteDatabase) -> None:
    url = f"postgresql://postgres@127.0.0.1:{site.server.port}/postgres"
    site.override(database="", database_url=url)
    with snapshot():
        assert page_positions.in_snapshot(["orders:1"]) is None
    assert site_databases.engine_database(serving.config()) is None


COMMITS = 400
CHANNELS = [f"orders:{number}" for number in range(4)]


def test_no_change_is_lost_between_a_page_and_what_it_recovers(site: SiteDatabase) -> None:
    """Writers change rows and publish, durably and not, while pages are rendered."""
    done = threading.Event()

    def write(channels: list[str], **options: Any) -> None:
        for step in range(COMMITS):
            channel = channels[step % len(channels)]
            with transaction.atomic(using=SITE), connections[SITE].cursor() as cursor:
                cursor.execute(
                    "INSERT INTO numbers AS old VALUES (%s, 1)"
                    " ON CONFLICT (channel) DO UPDATE SET n = old.n + 1 RETURNING n",
                    [channel],
                )
                (number,) = cursor.fetchone()
                realtime.publish(channel, number, **options)
        connections[SITE].close()

    def relay() -> None:
        relaying = Relaying(SITE)
        while not done.is_set() or Pending.objects.using(SITE).exists():
            relaying.look(1)
        relaying.close()
        assert relaying.counters.failures == 0
        connections[SITE].close()

    durably = {"durable": True, "using": SITE}
    writers = [
        threading.Thread(target=write, args=(CHANNELS[:2],), kwargs=durably),
        threading.Thread(target=write, args=(CHANNELS[2:],)),
    ]
    relays = threading.Thread(target=relay)
    for thread in (*writers, relays):
        thread.start()
    pages = []
    while any(thread.is_alive() for thread in writers):
        with snapshot() as cursor:
            cursor.execute("SELECT channel, n FROM numbers")
            numbers = dict(cursor.fetchall())
            pages.append((numbers, positions(page(), CHANNELS)))
    done.set()
    relays.join()

    last = COMMITS // 2
    assert len(pages) > 10
    streams = {
        channel: [(each["offset"], each["data"]) for each in realtime.history(channel)]
        for channel in CHANNELS
    }
    epochs = {channel: found.epoch for channel, found in realtime.positions(CHANNELS).items()}
    for numbers, found in pages:
        for channel in CHANNELS:
            at = found[channel]
            assert at is not None
            assert at.epoch == epochs[channel]
            recovered = {value for offset, value in streams[channel] if offset > at.offset}
            assert recovered >= {*range(numbers.get(channel, 0) + 1, last + 1)}
