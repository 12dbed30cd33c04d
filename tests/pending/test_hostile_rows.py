"""Rows that were changed by hand, clocks that differ, code of the site that fails: others go on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, router, transaction
from django.db.models.signals import post_delete, post_save, pre_delete

import realtime
from realtime.pending import publications, reading, retries, shards
from realtime.pending.models import LAST, SHARDS, Pending, Relay, now, shard_of
from realtime.pending.relay import RelayThread
from realtime.pending.retries import MAX_ATTEMPTS
from tests.pending.changed import NEIGHBOUR, bad_row, change_by_hand
from tests.pending.relaying import Relaying, data, operators

pytestmark = [pytest.mark.usefixtures("options"), pytest.mark.django_db(transaction=True)]

LOOKS = SHARDS


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "{"},
        {"data": ""},
        {"data": "[" * 100_000},
        {"extras": "{"},
        {"extras": "[]"},
        {"extras": "7"},
        {"extras": '{"a":' * 100_000},
        {"extras": '{"once": 5}'},
        {"extras": '{"once": ["k", -5, null]}'},
        {"extras": '{"once": ["k", "x", null]}'},
        {"extras": '{"once": ["k", [1], null]}'},
        {"extras": '{"once": ["", 60, null]}'},
        {"extras": '{"once": [7, 60, null]}'},
        {"extras": '{"once": ["k", 60, "x"]}'},
        {"extras": '{"once": ["k", 60, null, 1]}'},
        {"extras": '{"tags": 5}'},
        {"extras": '{"tags": {"a": 1}}'},
        {"extras": '{"tags": {"a": "\\ud83d"}}'},
        {"extras": '{"version": 5}'},
        {"extras": '{"version": []}'},
        {"extras": '{"version": ["x", ""]}'},
        {"extras": '{"version": [0, ""]}'},
        {"extras": '{"version": [1, 2]}'},
        {"extras": '{"skip_history": "yes"}'},
        {"extras": '{"change": ["k", false, ""]}'},
        {"extras": '{"change": ["k", 1, "", null]}'},
        {"extras": '{"change": ["k", false, "if_expired", null]}'},
        {"extras": '{"change": ["k", false, [], null]}'},
        {"extras": '{"change": ["k", false, "", -1]}'},
        {"extras": '{"change": [7, false, "", null]}'},
        {"extras": '{"change": ["\\ud83d", false, "", null]}'},
        {"channel": "seats:1"},
        {"channel": "seats:1", "extras": '{"change": ["", false, "", null]}'},
        {"channel": "seats:1", "extras": '{"change": ["a\\u0000", false, "", null]}'},
        {"channel": ""},
        {"channel": "orders:" + "x" * 1000},
        {"channel": "gone:1"},
    ],
    ids=lambda fields: "{} {:.24}".format(*next(iter(fields.items()))),
)
def test_row_that_nobody_can_publish_is_parked_and_others_go_on(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * (MAX_ATTEMPTS - 1))
    row = bad_row(**fields)
    relay.look(LOOKS)
    assert data(NEIGHBOUR) == [2]
    row.refresh_from_db()
    assert (row.due, row.attempts) == (None, MAX_ATTEMPTS if "channel" in fields else 1)
    assert row.error
    assert relay.counters.failures == 0


@pytest.mark.parametrize("attempts", [-32768, -1, 3, 32767, 1.5, "many", b"3"])
def test_count_of_attempts_may_be_anything(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch, attempts: Any
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * (MAX_ATTEMPTS - 1))
    row = bad_row()
    change_by_hand("attempts", attempts)
    change_by_hand("channel", "gone:1")
    relay.look(LOOKS)
    assert data(NEIGHBOUR) == [2]
    row.refresh_from_db()
    assert (row.due, row.attempts) == (None, MAX_ATTEMPTS)


@pytest.mark.parametrize(
    "held", ["{", "[]", "7", '{"orders:1": "x"}', '{"orders:1": null}', '{"orders:1": 1e300}']
)
def test_list_of_waiting_channels_may_be_anything(relay: Relaying, held: str) -> None:
    reading.next_due("default")
    Relay.objects.update(held=held)
    realtime.publish("orders:1", 1, durable=True)
    relay.look()
    assert data("orders:1") == [1]


def test_clock_of_another_host_keeps_no_channel_waiting(relay: Relaying) -> None:
    reading.next_due("default")
    Relay.objects.update(held=json.dumps({"orders:1": time.time() + 3600}))
    realtime.publish("orders:1", 1, durable=True)
    relay.look()
    assert data("orders:1") == [1]


def test_lease_of_a_clock_that_was_wrong_ends() -> None:
    reading.next_due("default")
    Relay.objects.update(owner="other", until=now() + timedelta(hours=1))
    with shards.taken("default", [1], "one") as taken:
        assert len(taken) == 1


@pytest.mark.parametrize(
    "due", [datetime(1000, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)], ids=str
)
def test_row_that_was_due_long_ago_is_published_and_counted(relay: Relaying, due: datetime) -> None:
    bad_row(due=due)
    Pending.objects.update(created=now() - timedelta(minutes=2))
    oldest = operators().overview().oldest
    assert oldest is not None
    assert 120 <= oldest < 180
    relay.look()
    assert data("orders:bad") == [1]


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_times_of_the_calendars_end_can_be_scheduled_or_are_refused(
    settings: Any, use_tz: bool, zone: str
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
    realtime.publish("orders:1", 1, at=LAST)
    with pytest.raises(ValueError, match="calendar"):
        realtime.publish("orders:1", 1, at=LAST + timedelta(microseconds=1))


@contextmanager
def failing_receivers() -> Iterator[None]:
    def fail(**_: Any) -> None:
        raise RuntimeError

    signals = (post_save, pre_delete, post_delete)
    for signal in signals:
        signal.connect(fail)
    yield
    for signal in signals:
        signal.disconnect(fail)


def test_signals_of_the_site_hear_nothing_of_rows(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * (MAX_ATTEMPTS - 1))
    bad_row(channel="gone:1")
    with failing_receivers():
        relay.look(LOOKS)
        assert operators().drop() == 1
    assert data(NEIGHBOUR) == [2]
    assert not Pending.objects.exists()


def test_publish_in_a_transaction_by_hand_writes_the_row(relay: Relaying) -> None:
    transaction.set_autocommit(False)
    try:
        realtime.publish("orders:1", 1, durable=True)
        transaction.rollback()
        realtime.publish("orders:1", 2, durable=True)
        transaction.commit()
    finally:
        transaction.set_autocommit(True)

    relay.look()

    assert data("orders:1") == [2]


def test_relay_commits_where_the_site_turned_autocommit_off(relay: Relaying) -> None:
    realtime.publish("orders:1", 1, durable=True)
    transaction.set_autocommit(False)
    try:
        relay.look()
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)

    assert data("orders:1") == [1]
    assert not Pending.objects.exists()


def test_large_rows_are_read_some_at_a_time(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "x" * reading.SHORT
    for number in range(6):
        realtime.publish("orders:1", [number, text], durable=True)
        realtime.publish("orders:1", number, durable=True)
    monkeypatch.setattr(reading, "LONG_TOGETHER", 3 * reading.SHORT)

    reading.next_due("default")
    with shards.taken("default", [shard_of("orders:1")], "one") as taken:
        first = reading.due_rows("default", taken, 500)
    assert 2 <= len(first) <= 6
    relay.look(LOOKS)

    expected = [each for number in range(6) for each in ([number, text], number)]
    assert data("orders:1") == expected


def test_row_larger_than_any_publication_is_parked(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,) * (MAX_ATTEMPTS - 1))
    for place in (reading, publications):
        monkeypatch.setattr(place, "MAX_LENGTH", reading.SHORT)
    row = bad_row(data=json.dumps("x" * 2 * reading.SHORT))
    relay.look(LOOKS)
    assert data(NEIGHBOUR) == [2]
    row.refresh_from_db()
    assert row.due is None


def test_router_that_fails_does_not_end_the_thread(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bool:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(router, "allow_migrate_model", fail)
        assert relay.thread._tables.databases() == []
    relay.thread._tables._recheck_at = 0.0

    assert relay.thread._tables.databases() == ["default"]


def test_relay_frees_what_it_held_when_the_connection_is_lost_in_a_statement(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    realtime.publish("orders:1", 1, durable=True)
    original = RelayThread._settle

    def losing(self: RelayThread, *arguments: Any) -> Any:
        connection.close()
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RelayThread, "_settle", losing)
        relay.look(1)
    relay.rested()
    relay.look()

    assert data("orders:1") == [1]
    assert not Pending.objects.exists()
    assert not Relay.objects.exclude(owner="").exists()


def test_of_two_operators_who_act_on_a_row_one_does(relay: Relaying) -> None:
    row = bad_row(due=None)
    pending, key = operators(), row.key.hex
    with failing_receivers():
        done = [pending.retry([key]), pending.drop([key]), pending.retry([key])]
    assert done == [1, 0, 0]
    relay.look()
    assert data("orders:bad") == [1]
