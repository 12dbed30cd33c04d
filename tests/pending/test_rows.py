"""Durable publications as rows: what `publish` writes, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

import realtime
from realtime import payload
from realtime.cluster.member import NewPublication
from realtime.engine.once import Once
from realtime.engine.versions import Version
from realtime.errors import NamespaceNotFound
from realtime.pending.models import Pending, at_once
from realtime.pending.publications import publication_of, row_of
from realtime.serving import serving
from realtime.testing import capture

pytestmark = [pytest.mark.usefixtures("options"), pytest.mark.django_db(transaction=True)]


def channels() -> list[str]:
    return list(Pending.objects.order_by("id").values_list("channel", flat=True))


def read(row: Pending) -> Pending:
    """The row as a relay reads it."""
    row.length = len(row.data) + len(row.extras)
    return row


def test_insert_is_the_only_statement_in_the_transaction() -> None:
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        assert realtime.publish("orders:1", 1, durable=True) is None
    assert [query["sql"].split()[0] for query in queries] == ["BEGIN", "INSERT", "COMMIT"]


def test_several_publications_are_one_insert() -> None:
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        realtime.publish_many([("orders:1", 1), ("orders:2", 2)], durable=True)
        realtime.broadcast(["orders:3", "orders:4"], 3, durable=True)
    written = [query["sql"].split()[0] for query in queries]
    assert written == ["BEGIN", "INSERT", "INSERT", "COMMIT"]
    assert channels() == ["orders:1", "orders:2", "orders:3", "orders:4"]


def test_rolled_back_transaction_leaves_no_row() -> None:
    with transaction.atomic():
        realtime.publish("orders:1", 1, durable=True)
        transaction.set_rollback(True)
    assert channels() == []


def test_namespace_can_be_durable_and_a_caller_can_say_no() -> None:
    results = realtime.publish_many([("bills:1", 1), ("orders:1", 2), ("bills:2", 3)])
    assert channels() == ["bills:1", "bills:2"]
    assert [result is None for result in results] == [True, False, True]
    assert realtime.publish("bills:1", 2, durable=False) is not None
    assert realtime.publish("bills:1", 2, on_commit=False) is not None
    assert channels() == ["bills:1", "bills:2"]


async def test_coroutines_write_rows_too() -> None:
    await realtime.apublish("orders:1", 1, durable=True)
    await realtime.apublish_many([("orders:2", 1)], at=timedelta(hours=1))
    await realtime.abroadcast(["orders:3"], 1, durable=True)
    assert [row.channel async for row in Pending.objects.order_by("id")] == [
        "orders:1",
        "orders:2",
        "orders:3",
    ]


def test_scheduled_row_is_due_then() -> None:
    noon = datetime(2040, 1, 1, 12, tzinfo=UTC)
    realtime.publish("orders:1", 1, at=noon)
    realtime.publish("orders:2", 1, durable=True)
    realtime.publish("orders:3", 1, at=timedelta(hours=1))

    first, second, third = Pending.objects.order_by("id")
    assert first.due == noon
    assert second.due == at_once()
    assert third.due is not None
    assert timedelta(minutes=59) < third.due - third.created < timedelta(minutes=61)


def test_row_keeps_all_of_a_publication() -> None:
    new = NewPublication(
        "orders:1",
        payload.from_object({"text": "é\0<"}),
        {"colour": "red"},
        Once("key é", 60, 3),
        True,
        Version(7, "run"),
        key="seat é",
        removed=True,
        key_mode="if_exists",
        ttl=60,
    )

    assert publication_of(read(row_of(new, at_once(), at_once()))) == new
    # what a publication has is kept: a new field needs a place in the row, but `expect`, which is
    # never durable, and `after`, which the relay adds
    default = NewPublication("a", payload.from_object(1))
    assert {
        name
        for name in NewPublication.__struct_fields__
        if getattr(new, name) != getattr(default, name)
    } == set(NewPublication.__struct_fields__) - {"expect", "after"}


def test_key_of_the_row_makes_a_repetition_nothing() -> None:
    row = row_of(NewPublication("orders:1", payload.from_object(1)), at_once(), at_once())
    assert publication_of(read(row)).once == Once(row.key.hex, 86_400)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"durable": False, "at": timedelta(1)}, ValueError),
        ({"durable": False, "using": "default"}, ValueError),
        ({"durable": True, "on_commit": False}, ValueError),
        ({"at": timedelta(1), "on_commit": False}, ValueError),
        ({"at": datetime(2040, 1, 1)}, ValueError),
        ({"at": timedelta.max}, ValueError),
        ({"at": "tomorrow"}, TypeError),
    ],
    ids=str,
)
def test_wishes_that_contradict_are_refused(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        realtime.publish("orders:1", 1, **arguments)
    assert channels() == []


def test_channel_is_checked_at_the_call() -> None:
    with pytest.raises(NamespaceNotFound):
        realtime.publish("nope:1", 1, durable=True)


def test_without_the_app_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "row_writer", None)
    with pytest.raises(ImproperlyConfigured, match=r"realtime\.pending"):
        realtime.publish("orders:1", 1, durable=True)


def test_redis_that_is_away_does_not_fail_the_publication(
    options: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    options(redis_url="redis://127.0.0.1:1")
    with caplog.at_level(logging.INFO), transaction.atomic():
        realtime.publish("orders:1", 1, durable=True)
    assert channels() == ["orders:1"]
    assert caplog.messages == []


def test_outbox_has_durable_publications_at_the_commit() -> None:
    with capture() as outbox:
        with transaction.atomic():
            realtime.publish("orders:1", 1, durable=True)
            realtime.publish("orders:2", 2, at=timedelta(hours=1))
            assert outbox == []
        assert outbox == [("orders:1", 1), ("orders:2", 2)]

    assert outbox[0].at is None
    assert outbox[1].at is not None
    assert outbox[1].at > datetime.now(UTC)
    assert channels() == []


@pytest.mark.django_db(transaction=False)
def test_outbox_has_them_in_a_test_that_is_never_committed() -> None:
    with capture() as outbox:
        with transaction.atomic():
            realtime.publish("orders:1", 1, durable=True)
        with transaction.atomic():
            realtime.publish("orders:2", 2, durable=True)
            transaction.set_rollback(True)
    assert outbox == [("orders:1", 1)]


async def test_outbox_has_those_of_coroutines() -> None:
    with capture() as outbox:
        await realtime.apublish("orders:1", 1, durable=True)
    assert outbox == [("orders:1", 1)]
