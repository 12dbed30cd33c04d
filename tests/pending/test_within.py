"""Rows in the database of the engine: they are published in the transaction that deletes them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.db import connections, transaction

import realtime
from realtime.config.options import ChannelOptions
from realtime.engine.base import Published
from realtime.engine.postgresql.rings import Ring
from realtime.engine.postgresql.schema import quoted
from realtime.engine.postgresql.streams import PostgreSQLStreams
from realtime.errors import EngineUnavailable
from realtime.pending.models import Pending, Relay
from realtime.pending.publications import publication_of
from realtime.pending.relay import RelayThread
from realtime.pending.within import StreamsWithin, _HeldRinger
from realtime.serving import run_by_hand
from tests.engine.map_bench import KINDS_OF_MAPS, change
from tests.pending.relaying import Relaying, data, row, write
from tests.site_database import SITE, SiteDatabase

pytest_plugins = ["tests.database_fixtures"]


@pytest.fixture
def site(site_database: SiteDatabase) -> SiteDatabase:
    """A database with the tables of rows and of the engine, as a node leaves them."""
    site_database.migrate()
    site_database.keep_house()
    return site_database


@pytest.fixture
def relaying(site: SiteDatabase) -> Iterator[Relaying]:
    made = Relaying(SITE)
    yield made
    made.close()


def publish(channel: str, *values: Any, **options: Any) -> None:
    for value in values:
        realtime.publish(channel, value, durable=True, using=SITE, **options)


def waiting() -> int:
    return Pending.objects.using(SITE).count()


def keys_kept(site: SiteDatabase) -> int:
    ((count,),) = site.execute("SELECT count(*) FROM {schema}.once")
    return int(count)


def test_rows_leave_with_their_publications_in_order_and_without_keys(
    site: SiteDatabase, relaying: Relaying
) -> None:
    for number in range(10):
        publish(f"orders:{number % 2}", number)
    relaying.look(2)
    assert (data("orders:0"), data("orders:1")) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    assert waiting() == 0
    assert keys_kept(site) == 0
    assert (relaying.counters.relayed, relaying.counters.failures) == (10, 0)


@pytest.mark.parametrize("kind", [RelayThread, StreamsWithin])
def test_relay_that_fails_at_a_step_leaves_rows_and_streams_as_they_were(
    site: SiteDatabase, relaying: Relaying, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    """Before the rows are deleted, and after the publications were made."""
    publish("orders:1", 1, 2)
    made = PostgreSQLStreams.publish_many

    async def publish_and_fail(streams: PostgreSQLStreams, publications: Any) -> Any:
        await made(streams, publications)
        raise EngineUnavailable("lost")

    with monkeypatch.context() as patch:
        if kind is RelayThread:
            patch.setattr(kind, "_settle", lambda *_: 1 / 0)
        else:
            patch.setattr(kind, "publish_many", publish_and_fail)
        relaying.look(1)
    assert data("orders:1") == []
    assert waiting() == 2
    assert (relaying.counters.relayed, relaying.counters.failures) == (0, 1)

    relaying.rested()
    relaying.thread._apart_until.clear()
    relaying.look()
    assert data("orders:1") == [1, 2]
    assert waiting() == 0


@pytest.mark.parametrize("step", ["_settle", "_publish", "ring"])
def test_server_that_ends_the_session_at_a_step_loses_and_repeats_nothing(
    site: SiteDatabase, relaying: Relaying, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The last one is after the publications were made, and before the commit."""
    publish("orders:1", 1, 2)
    kind = RelayThread if step.startswith("_") else _HeldRinger
    original = getattr(kind, step)
    entered: list[str] = []

    def end_sessions(*arguments: Any) -> Any:
        if not entered:
            entered.append(step)
            site.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        return original(*arguments)

    monkeypatch.setattr(kind, step, end_sessions)
    relaying.look(1)
    assert entered == [step]
    assert relaying.counters.failures == 1
    relaying.rested()
    relaying.look()
    assert data("orders:1") == [1, 2]
    assert waiting() == 0
    assert keys_kept(site) == 0


def test_relay_that_dies_after_the_commit_has_sent_what_no_stream_keeps(
    site: SiteDatabase, relaying: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.override(namespaces=[*site.options["namespaces"], {"name": "plain"}])
    publish("plain:1", 1, 2)
    publish("orders:1", 3)
    monkeypatch.setattr(RelayThread, "_ring", lambda *_: 1 / 0)
    with site.server.connect() as listening:
        listening.autocommit = True
        listening.execute(f"LISTEN {quoted(site.schema)}")
        relaying.look(1)
        assert waiting() == 0
        payloads = [each.payload.partition(" ")[2] for each in listening.notifies(timeout=0.5)]
    rings = [msgspec.json.decode(payload, type=Ring) for payload in payloads]
    records = [msgspec.json.decode(each.record)["record"] for r in rings for each in r.messages]
    assert [int(record[0]) for record in records] == [1, 2]


def test_row_that_another_way_has_published_is_not_published_again(
    site: SiteDatabase, relaying: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of an older version died between the two, or this one failed."""
    publish("orders:1", 1)
    relaying.thread._apart_until[SITE] = float("inf")
    with monkeypatch.context() as patch:
        patch.setattr(RelayThread, "_settle", lambda *_: 1 / 0)
        relaying.look(1)
    assert data("orders:1") == [1]
    assert waiting() == 1

    publish("orders:1", 2)
    relaying.rested()
    relaying.thread._apart_until.clear()
    relaying.look()
    assert data("orders:1") == [1, 2]
    assert waiting() == 0


def test_after_a_failure_rows_go_the_other_way(
    site: SiteDatabase, relaying: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any) -> Any:
        raise EngineUnavailable("permission denied")

    monkeypatch.setattr(StreamsWithin, "publish_many", refuse)
    publish("orders:1", 1, 2)
    relaying.look(1)
    assert data("orders:1") == []
    relaying.rested()
    relaying.look()
    assert data("orders:1") == [1, 2]
    assert keys_kept(site) == 2


def test_serializable_transactions_of_the_site_keep_no_row_waiting(
    site: SiteDatabase, relaying: Relaying
) -> None:
    site.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    try:
        connections[SITE].close()
        publish("orders:1", 1)
        relaying.look()
        publish("orders:1", 2)
        relaying.look()
    finally:
        site.execute("ALTER DATABASE postgres RESET default_transaction_isolation")
    assert data("orders:1") == [1, 2]


def test_key_of_the_caller_stays(site: SiteDatabase, relaying: Relaying) -> None:
    realtime.publish("orders:1", 1, once="a")
    publish("orders:1", 1, once="a")
    publish("orders:1", 2, once="b")
    relaying.look()
    assert data("orders:1") == [1, 2]
    publish("orders:1", 2, once="b")
    relaying.look()
    assert data("orders:1") == [1, 2]
    assert waiting() == 0


def test_versions_tags_and_channels_without_history_are_as_ever(
    site: SiteDatabase, relaying: Relaying
) -> None:
    site.override(namespaces=[*site.options["namespaces"], {"name": "plain"}])
    publish("orders:1", 2, version=2)
    publish("orders:1", 1, version=1)
    publish("orders:1", 3, tags={"colour": "red"})
    publish("orders:1", 4, skip_history=True)
    publish("plain:1", 1)
    relaying.look()
    found = [(each["data"], each.get("tags")) for each in realtime.history("orders:1")]
    assert found == [(2, None), (3, {"colour": "red"})]
    assert waiting() == 0
    assert relaying.counters.relayed == 5


def test_refused_rows_are_parked_and_keep_no_other_row_waiting(
    site: SiteDatabase, relaying: Relaying
) -> None:
    write([row("orders:1", data="{"), row("orders:1", data="1"), row("gone:1")], SITE)
    relaying.look()
    assert data("orders:1") == [1]
    rows = dict(Pending.objects.using(SITE).values_list("channel", "attempts"))
    assert rows == {"orders:1": 1, "gone:1": 1}
    assert Pending.objects.using(SITE).get(channel="orders:1").due is None
    assert "gone:1" in "".join(Relay.objects.using(SITE).values_list("held", flat=True))


def test_rows_are_published_apart_where_the_engine_is_elsewhere(
    site: SiteDatabase, relaying: Relaying
) -> None:
    url = f"postgresql://postgres@127.0.0.1:{site.server.port}/postgres"
    site.override(database="", database_url=url)
    publish("orders:1", 1)
    relaying.look()
    assert data("orders:1") == [1]
    assert keys_kept(site) == 1


def test_two_relays_publish_each_row_once_and_in_order(site: SiteDatabase) -> None:
    names = [f"orders:{number}" for number in range(20)]
    for number in range(30):
        with transaction.atomic(using=SITE):
            for name in names:
                publish(name, number)
    failures: list[int] = []

    def relay() -> None:
        own = Relaying(SITE)
        while Pending.objects.using(SITE).exists():
            own.look(1)
        failures.append(own.counters.failures)
        own.close()
        connections[SITE].close()

    threads = [threading.Thread(target=relay) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: data(name) for name in names} == {name: [*range(30)] for name in names}
    assert failures == [0, 0]


def test_key_of_a_row_is_asked_and_not_kept_within(site: SiteDatabase) -> None:
    fresh = row("orders:1", key=uuid.uuid4())
    fresh.length = 0
    once = publication_of(fresh, 0).once
    assert once is not None
    assert (once.key, once.lifetime) == (fresh.key.hex, 0)


@pytest.mark.parametrize("options", KINDS_OF_MAPS, ids=lambda options: options.map)
def test_changes_of_maps_are_made_with_the_transaction(
    site: SiteDatabase, relaying: Relaying, options: ChannelOptions
) -> None:
    within = relaying.thread._within(SITE)
    assert within is not None
    changes = [change("board", key, 1, options) for key in ("a", "b")]

    def entries() -> list[bytes]:
        return [bytes(key) for (key,) in site.execute("SELECT key FROM {schema}.map_entry")]

    transaction.set_autocommit(False, using=SITE)
    made = run_by_hand(within.publish_many(changes))
    assert [isinstance(each, Published) and each.kept for each in made] == [True, True]
    with connections[SITE].cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
    transaction.rollback(using=SITE)
    transaction.set_autocommit(True, using=SITE)
    assert entries() == []

    with transaction.atomic(using=SITE):
        run_by_hand(within.publish_many(changes))
    assert entries() == [b"a", b"b"]
