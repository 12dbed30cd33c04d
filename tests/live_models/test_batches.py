"""Transactions, and rows that are announced: each row once, after the commit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from realtime.live import aannounce, announce
from realtime.live.rows.feeds import LiveFeed
from realtime.server_api.transactions import Outcomes, Publications
from realtime.serving import serving
from realtime.testing import Outbox
from tests.live_models.parts import channels_of, everywhere, removed
from tests.live_models.shop.models import Node, Order, Plain, Quick
from tests.live_models.shop.rows import LiveOrder

pytestmark = pytest.mark.django_db(transaction=True)


# transactions


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run code once between the next read of a row and its publication, as another process may."""

    def overtake(change: Callable[[], object]) -> None:
        put = LiveFeed.put

        def read_before(self: LiveFeed, row: Any, **options: Any) -> Any:
            monkeypatch.setattr(LiveFeed, "put", put)
            change()
            return put(self, row, **options)

        monkeypatch.setattr(LiveFeed, "put", read_before)

    return overtake


def test_state_that_was_overtaken_is_not_the_last(
    overtaken: Callable[[Callable[[], object]], None], outbox: Outbox, order: Order
) -> None:
    def pay() -> None:
        other = Order.objects.get(pk=order.pk)
        other.title, other.team = "paid", "8"
        other.save()

    overtaken(pay)
    order.title = "sent"
    order.save()

    order.refresh_from_db()
    last = dict(outbox)
    assert last == {**dict(everywhere(order, title="paid")), "team:7:orders": removed(order.pk)}


def test_row_that_was_deleted_meanwhile_is_removed(
    overtaken: Callable[[Callable[[], object]], None], outbox: Outbox, order: Order
) -> None:
    channels = channels_of(order)
    overtaken(Order.objects.filter(pk=order.pk).delete)
    announce(Order.objects.filter(pk=order.pk))
    last = dict(outbox)
    assert [last[channel]["op"] for channel in channels] == ["remove", "remove"]


def test_rows_of_others_that_change_meanwhile_go_out_once(
    overtaken: Callable[[Callable[[], object]], None], outbox: Outbox, order: Order
) -> None:
    other = Order.objects.create(team="7")
    outbox.clear()
    overtaken(other.save)
    order.save()
    assert sorted(outbox, key=str) == sorted([*everywhere(order), *everywhere(other)], key=str)


def test_row_goes_out_once_after_the_commit_with_its_last_state(
    outbox: Outbox, order: Order
) -> None:
    with transaction.atomic():
        order.team = "8"
        order.save()
        other = Order.objects.get(pk=order.pk)
        other.title = "paid"
        other.save()
        order.refresh_from_db()
        order.team = "9"
        order.save()
        assert outbox == []

    assert outbox == [
        *everywhere(order, title="paid"),
        ("team:7:orders", removed(order.pk)),
        ("team:8:orders", removed(order.pk)),
    ]


def test_rows_of_a_transaction_are_read_together(outbox: Outbox) -> None:
    orders = [Order.objects.create(team="7") for _ in range(5)]
    outbox.clear()
    with CaptureQueriesContext(connection) as saved, transaction.atomic():
        for order in orders:
            order.save()
    reads = [
        each["sql"] for each in saved if each["sql"].startswith("SELECT") and "title" in each["sql"]
    ]

    assert len(reads) == 1
    assert len(outbox) == 10


def test_rolled_back_nothing_is_published(outbox: Outbox, order: Order) -> None:
    with transaction.atomic():
        order.team = "8"
        order.save()
        Order.objects.create(team="7")
        transaction.set_rollback(True)
    assert outbox == []

    order.title = "paid"
    order.save()
    # the object still says 8, and saves it
    assert outbox == [*everywhere(order, title="paid"), ("team:7:orders", removed(order.pk))]


def test_savepoint_that_is_rolled_back_publishes_nothing(outbox: Outbox, order: Order) -> None:
    with transaction.atomic():
        with suppress(IntegrityError), transaction.atomic():
            Order.objects.create(team="7")
            order.title = "lost"
            order.save()
            raise IntegrityError
        other = Order.objects.create(team="8")
    assert outbox == everywhere(other)


def test_row_whose_last_change_is_rolled_back_has_the_state_before(
    outbox: Outbox, order: Order
) -> None:
    with transaction.atomic():
        order.title = "kept"
        order.save()
        with suppress(IntegrityError), transaction.atomic():
            order.title = "lost"
            order.save()
            raise IntegrityError
    assert outbox == everywhere(order, title="kept")


def test_row_that_moves_in_savepoints_is_removed_once_where_it_was(
    outbox: Outbox, order: Order
) -> None:
    with transaction.atomic():
        order.save()
        with transaction.atomic():
            found = Order.objects.get(pk=order.pk)
            found.team = "8"
            found.save()
    assert outbox == [*everywhere(found), ("team:7:orders", removed(order.pk))]


def test_savepoints_that_were_released_are_one_batch(outbox: Outbox) -> None:
    """As of `update_or_create` in a loop: each call has a savepoint of its own."""
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        for number in range(20):
            Order.objects.update_or_create(team="7", title=str(number))
    reads = [each["sql"] for each in queries if " IN (" in each["sql"] and "title" in each["sql"]]
    assert len(outbox) == 40
    # the last savepoint was released after its only change
    assert len(reads) <= 2


def test_change_after_a_commit_belongs_to_the_next_batch(outbox: Outbox, order: Order) -> None:
    for title in ("one", "two"):
        with transaction.atomic():
            order.title = title
            order.save()
    assert outbox == [*everywhere(order, title="one"), *everywhere(order, title="two")]


@pytest.mark.django_db
def test_test_case_of_a_site_sees_what_its_code_publishes(outbox: Outbox) -> None:
    """The transaction around the test is never committed."""
    with transaction.atomic():
        order = Order.objects.create(team="7")
    assert outbox == everywhere(order)
    outbox.clear()

    with transaction.atomic():
        order.title = "paid"
        order.save()
    assert outbox == everywhere(order, title="paid")


# announced


def test_bulk_update_is_one_batch_and_one_query_more(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    Node.objects.bulk_create([Node() for _ in range(500)])
    batches: list[int] = []
    send = serving.publisher.send

    def counted(publications: Publications) -> Outcomes:
        batches.append(len(publications))
        return send(publications)

    monkeypatch.setattr(serving.publisher, "send", counted)
    with CaptureQueriesContext(connection) as queries:
        announce(Node.objects.all())

    assert len(queries) == 1
    assert batches == [500]
    assert {data["key"] for _, data in outbox} == {str(node.pk) for node in Node.objects.all()}


def test_announced_objects_are_removed_where_they_were(outbox: Outbox, order: Order) -> None:
    gone = Order.objects.create(team="7")
    outbox.clear()
    order.team = "8"
    Order.objects.bulk_update([order], ["team"])
    Order.objects.filter(pk=gone.pk)._raw_delete("default")

    announce([order, gone])

    assert outbox == [
        *everywhere(order),
        ("team:7:orders", removed(order.pk)),
        *((channel, removed(gone.pk)) for channel in channels_of(gone)),
    ]


def test_announced_rows_go_out_after_the_commit(outbox: Outbox, order: Order) -> None:
    with transaction.atomic():
        Order.objects.update(title=F("team"))
        announce(Order.objects.all())
        order.refresh_from_db()
        order.total = 5
        order.save()
        assert outbox == []
    assert outbox == everywhere(order, title="7", total="5.00")
    outbox.clear()

    with transaction.atomic():
        announce(Order.objects.all())
        announce([order])
        transaction.set_rollback(True)
    assert outbox == []


@pytest.mark.parametrize(
    "change",
    [
        lambda orders: orders.only("title"),
        lambda orders: orders.defer("team", "total"),
        lambda orders: orders.select_for_update(),
        lambda orders: orders.order_by("pk")[:1],
        lambda orders: orders.union(orders),
    ],
    ids=["only", "defer", "select_for_update", "slice", "union"],
)
def test_announced_rows_are_whole_whatever_the_query_was_made_for(
    monkeypatch: pytest.MonkeyPatch, outbox: Outbox, order: Order, change: Callable[[Any], Any]
) -> None:
    # as PostgreSQL, where such a query needs a transaction
    monkeypatch.setattr(connection.features, "has_select_for_update", True)
    with CaptureQueriesContext(connection) as queries:
        announce(change(Order.objects.all()))
    assert outbox == everywhere(order)
    assert len([each for each in queries if "tag" not in each["sql"]]) == 1


@pytest.mark.parametrize(
    "deferring", [lambda orders: orders.only("title"), lambda orders: orders.defer("team")]
)
def test_feed_that_defers_fields_knows_the_channels_of_its_rows(
    monkeypatch: pytest.MonkeyPatch,
    outbox: Outbox,
    order: Order,
    deferring: Callable[[Any], Any],
) -> None:
    monkeypatch.setattr(LiveOrder, "rows", lambda self, orders: deferring(orders))
    order.save()
    assert outbox == everywhere(order)


async def test_coroutines_announce() -> None:
    order = await Order.objects.acreate(team="7")
    await aannounce(Order.objects.all())
    await aannounce([order])


def test_announcing_anything_else_is_a_mistake(outbox: Outbox) -> None:
    announce([])
    announce(Quick.objects.none())
    with pytest.raises(ValueError, match="Plain is not live"):
        announce(Plain.objects.all())
    with pytest.raises(ValueError, match="Plain is not live"):
        announce([Plain()])
    with pytest.raises(TypeError):
        announce([5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not of values"):
        announce(Order.objects.values("title"))
    assert outbox == []
