"""Rows that no relay reads, or that it fails to read: they are parked, and others go on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from realtime.pending import relay as module
from realtime.pending.models import SHARDS, Pending, shard_of
from tests.pending.changed import NEIGHBOUR, bad_row, change_by_hand
from tests.pending.relaying import Relaying, data, operators

pytestmark = [pytest.mark.usefixtures("options"), pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("due", "9999-12-31 23:59:59.999999", "after the calendar ends"),
        ("due", "99999-01-01", "after the calendar ends"),
        ("due", "infinity", "after the calendar ends"),
        ("due", "soon", "after the calendar ends"),
        ("due", "-infinity", "before the calendar begins"),
        ("due", "0001-01-01", "before the calendar begins"),
        ("due", 5, "before the calendar begins"),
        ("due", b"1999", "after the calendar ends"),
        ("due", "1999-13-45", "no time"),
        ("due", "1999-02-31 00:00:00", "no time"),
        ("due", "1999-01-01  00:00", "no time"),
        ("due", "1999-01-01 ", "no time"),
        ("due", "1999-01-01 later", "no time"),
        ("due", "1999-01-01 00:00:00.5.5", "no time"),
        ("due", "1999-01-01 00:00:00.", "no time"),
        ("due", "1999-01-01 00:00:00+02:00", "no time"),
        ("due", "1999-01-01 00:00:00\0", "no time"),
        ("shard", -1, "not 0 to 15"),
        ("shard", SHARDS, "not 0 to 15"),
        ("shard", 32767, "not 0 to 15"),
        ("shard", 3.5, "not 0 to 15"),
        ("shard", 1e-300, "not 0 to 15"),
        ("shard", "x", "not 0 to 15"),
    ],
)
def test_row_that_no_relay_would_read_is_parked_and_can_be_retried(
    relay: Relaying, column: str, value: Any, error: str
) -> None:
    row = bad_row()
    change_by_hand(column, value)

    relay.look()

    assert data(NEIGHBOUR) == [2]
    assert (relay.counters.failures, relay.counters.parked) == (0, 1)
    [parked] = operators().parked(10)
    assert (parked.key, error in parked.error) == (row.key.hex, True)
    operators().retry([parked.key])
    relay.look()
    assert data("orders:bad") == [1]


@pytest.mark.parametrize(
    "changes",
    [
        *({"key": "x"}, {"key": b"\xff"}, {"channel": b"\xff"}, {"data": b"1"}, {"data": b"\xff"}),
        # no relay would read these, either
        *({"shard": SHARDS, "channel": b"\xff"}, {"due": "99999-01-01", "channel": b"\xff"}),
    ],
    ids=str,
)
def test_row_that_cannot_be_read_is_parked_and_can_be_dropped(
    relay: Relaying, changes: dict[str, Any]
) -> None:
    """SQLite keeps anything in any column."""
    bad_row()
    for column, value in changes.items():
        change_by_hand(column, value)

    relay.look()
    relay.rested()
    relay.look()

    assert data(NEIGHBOUR) == [2]
    assert relay.counters.parked == 1
    [parked] = operators().parked(10)
    assert "cannot be read" in parked.error
    assert operators().drop([parked.key]) == 1


@pytest.mark.parametrize("use_tz", [True, False])
@pytest.mark.parametrize(
    "due", ["1999-01-01", "1999-01-01 00:00", "1999-12-31 23:59:59", "1999-12-31 23:59:59.999999"]
)
def test_row_that_is_due_at_a_time_written_by_hand_is_published(
    relay: Relaying, settings: Any, use_tz: bool, due: str
) -> None:
    settings.USE_TZ = use_tz
    bad_row()
    change_by_hand("due", due)
    relay.look()
    assert data("orders:bad") == [1]
    assert relay.counters.parked == 0


@pytest.mark.parametrize(
    "created", ["infinity", "-infinity", "1999-13-45", "1999-02-31 00:00:00", 5, b"\xff"]
)
@pytest.mark.parametrize("due", [None, "1999-01-01", "2001-02-31 00:00:00"])
def test_operators_see_rows_whatever_their_times_are(
    settings: Any, created: Any, due: str | None
) -> None:
    settings.USE_TZ = True
    bad_row()
    Pending.objects.exclude(channel="orders:bad").delete()
    change_by_hand("created", created)
    change_by_hand("due", due)

    overview, parked = operators().overview(), operators().parked(10)

    if due is None:
        assert (overview.parked, overview.oldest) == (1, None)
        assert [row.created for row in parked] == [None]
    else:
        assert (overview.waiting, overview.oldest, parked) == (1, 0.0, [])


def test_rows_are_looked_through_again_for_such_ones(
    relay: Relaying, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay.look()
    bad_row()
    change_by_hand("shard", SHARDS)
    relay.look()
    assert relay.counters.parked == 0
    monkeypatch.setattr(module, "INVALID_ROWS_INTERVAL", 0.0)
    relay.thread._invalid_rows_at.clear()

    relay.look()

    assert relay.counters.parked == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("key", "x"),
        ("key", b"\xff"),
        ("channel", b"\xff"),
        ("data", b"1" * 300),
        ("error", b"\xff"),
        ("attempts", "many"),
    ],
)
def test_parked_row_that_cannot_be_read_can_be_listed_and_dropped(column: str, value: Any) -> None:
    bad_row()
    Pending.objects.update(due=None)
    change_by_hand(column, value)
    parked = operators().parked(10)
    assert len(parked) == 2
    json.dumps([row._replace(created=None) for row in parked])
    assert operators().drop([row.key for row in parked]) == 2


NOT_UTF8 = b"\xff"


@pytest.mark.parametrize("column", ["channel", "data", "extras", "error"])
@pytest.mark.parametrize("due", [True, False], ids=["due", "parked"])
def test_text_that_is_not_utf8_becomes_text(relay: Relaying, column: str, due: bool) -> None:
    bad_row()
    if not due:
        Pending.objects.filter(channel="orders:bad").update(due=None)
    change_by_hand(column, NOT_UTF8, "CAST(%s AS TEXT)")

    relay.look()
    relay.rested()
    relay.look()

    assert data(NEIGHBOUR) == [2]
    parked = operators().parked(10)
    assert len(parked) == 1
    assert operators().drop() == 1


@pytest.mark.parametrize("shard", [99, 3.5, "x"])
def test_rows_go_out_where_their_shard_was_changed_in_the_other_table(
    relay: Relaying, shard: Any
) -> None:
    relay.look()
    with connection.cursor() as cursor:
        change = "UPDATE realtime_pending_relay SET shard = %s WHERE shard = %s"
        cursor.execute(change, [shard, shard_of(NEIGHBOUR)])
    bad_row()
    relay.look()
    assert data(NEIGHBOUR) == [2]
