"""Live models in durable channels: their publications belong to the transaction."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from realtime.live import announce
from realtime.pending.models import Pending
from realtime.testing import capture
from tests.live_models.conftest import KEPT, OPTIONS
from tests.live_models.parts import everywhere, put, removed
from tests.live_models.shop.models import Order

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def durable_teams(settings: Any) -> None:
    """The channels of teams are durable, those of orders are not."""
    namespaces = [{"name": "team", "durable": True, **KEPT}, {"name": "order", **KEPT}]
    settings.REALTIME = OPTIONS | {"namespaces": namespaces}


def rows() -> list[tuple[str, Any]]:
    """What the transaction holds, in order."""
    found = Pending.objects.order_by("id").values_list("channel", "data")
    return [(channel, json.loads(data)) for channel, data in found]


@pytest.fixture
def order() -> Order:
    made = Order.objects.create(team="7")
    Pending.objects.all().delete()
    return Order.objects.get(pk=made.pk)


def test_publication_is_written_in_the_transaction_of_the_row(order: Order) -> None:
    with transaction.atomic():
        order.title = "paid"
        order.save()
        assert rows() == [("team:7:orders", put(order, title="paid"))]
    assert rows() == [("team:7:orders", put(order, title="paid"))]


def test_row_that_changes_again_is_written_once_with_its_last_state(order: Order) -> None:
    with transaction.atomic():
        for team in ("8", "9"):
            found = Order.objects.get(pk=order.pk)
            found.team = team
            found.save()

    assert rows() == [
        ("team:9:orders", put(order)),
        ("team:7:orders", removed(order.pk)),
        ("team:8:orders", removed(order.pk)),
    ]


def test_savepoint_that_is_rolled_back_gives_the_row_before_back(order: Order) -> None:
    with transaction.atomic():
        order.title = "kept"
        order.save()
        with suppress(IntegrityError), transaction.atomic():
            order.title = "lost"
            order.save()
            raise IntegrityError
        assert rows() == [("team:7:orders", put(order, title="kept"))]
        order.title = "last"
        order.save()

    assert rows() == [("team:7:orders", put(order, title="last"))]


def test_rolled_back_nothing_is_written(order: Order) -> None:
    with transaction.atomic():
        order.save()
        transaction.set_rollback(True)
    assert rows() == []


def test_without_a_transaction_the_row_is_written_after_the_change(order: Order) -> None:
    order.title = "paid"
    order.save()
    assert rows() == [("team:7:orders", put(order, title="paid"))]


def test_announced_rows_are_written_with_one_statement(order: Order) -> None:
    Order.objects.bulk_create([Order(team="7") for _ in range(20)])
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        announce(Order.objects.all())
        assert len(rows()) == 21
    inserts = [each for each in queries if each["sql"].startswith("INSERT")]
    assert len(inserts) == 1


def test_outbox_of_a_test_has_the_last_state_once(order: Order) -> None:
    with capture() as outbox:
        with transaction.atomic():
            order.title = "kept"
            order.save()
            with suppress(IntegrityError), transaction.atomic():
                order.title = "lost"
                order.save()
                raise IntegrityError
            order.title = "last"
            order.save()
            assert outbox == []

        assert sorted(outbox, key=str) == sorted(everywhere(order, title="last"), key=str)
