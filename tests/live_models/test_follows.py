"""Rows that show others: they go out when what they show changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

import realtime
from realtime.live.rows import follows
from realtime.live.rows.feeds import Feed, LiveFeed
from realtime.pending.models import Pending
from realtime.testing import Outbox
from tests.live_models.conftest import KEPT, OPTIONS
from tests.live_models.parts import removed
from tests.live_models.shop.models import Company, Customer, Gold, Invoice, Regular

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def invoice(outbox: Outbox) -> Invoice:
    company = Company.objects.create(name="Acme")
    customer = Customer.objects.create(name="Ann", company=company)
    made = Invoice.objects.create(customer=customer, clerk=Regular.objects.create(name="Bob"))
    outbox.clear()
    return Invoice.objects.get(pk=made.pk)


def put(invoice: Invoice, *names: str, customer: Any = 0) -> list[tuple[str, Any]]:
    data = {"op": "put", "key": str(invoice.pk), "data": list(names)}
    customer = invoice.customer_id if customer == 0 else customer
    channels = [f"customer:{customer}:invoices"] * (customer is not None) + [
        f"invoice:{invoice.pk}"
    ]
    return [(channel, data) for channel in channels]


def rename(row: Any) -> None:
    row.name = "new"
    row.save()


def gold(customer: Customer) -> Gold:
    """Return a row of another table that inherits the row of a customer. It is not saved."""
    return Gold(customer_ptr=customer, company_id=customer.company_id)


CHANGES: dict[str, tuple[Callable[[Invoice], Any], tuple[str, str, str]]] = {
    "a relation": (lambda invoice: rename(invoice.customer), ("new", "Acme", "Bob")),
    "a relation of it": (
        lambda invoice: rename(invoice.customer.company),
        ("Ann", "new", "Bob"),
    ),
    "another path": (lambda invoice: rename(invoice.clerk), ("Ann", "Acme", "new")),
    "a proxy": (
        lambda invoice: rename(Regular.objects.get(pk=invoice.customer_id)),
        ("new", "Acme", "Bob"),
    ),
    "what a proxy stands for": (
        lambda invoice: rename(Customer.objects.get(pk=invoice.clerk_id)),
        ("Ann", "Acme", "new"),
    ),
    "a row of an inheriting model": (
        lambda invoice: rename(gold(invoice.customer)),
        ("new", "Acme", "Bob"),
    ),
    "deleted, set to null": (
        lambda invoice: Company.objects.all().delete(),
        ("Ann", "", "Bob"),
    ),
}


@pytest.mark.parametrize(("change", "names"), CHANGES.values(), ids=CHANGES)
def test_row_goes_out_when_what_it_shows_changes(
    outbox: Outbox,
    invoice: Invoice,
    change: Callable[[Invoice], Any],
    names: tuple[str, str, str],
) -> None:
    change(invoice)
    assert outbox == put(invoice, *names)


def test_row_leaves_the_channel_of_what_was_deleted(outbox: Outbox, invoice: Invoice) -> None:
    channel = f"customer:{invoice.customer_id}:invoices"
    invoice.customer.delete()
    assert outbox == [*put(invoice, "", "", "Bob", customer=None), (channel, removed(invoice.pk))]


def test_row_that_is_deleted_with_what_it_shows_is_removed(
    outbox: Outbox, invoice: Invoice
) -> None:
    invoice.clerk.delete()
    assert outbox == [(channel, removed(invoice.pk)) for channel, _ in put(invoice)]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: Customer.objects.create(name="no row shows this one").save(),
        lambda invoice: Customer.objects.filter(pk=invoice.customer_id).update(name="new"),
    ],
    ids=["another row", "no signal"],
)
def test_nothing_goes_out_for(
    outbox: Outbox, invoice: Invoice, change: Callable[[Invoice], Any]
) -> None:
    change(invoice)
    assert outbox == []


def test_rolled_back_change_of_what_it_shows_publishes_nothing(
    outbox: Outbox, invoice: Invoice
) -> None:
    with transaction.atomic():
        rename(invoice.customer)
        with transaction.atomic():
            rename(invoice.clerk)
            transaction.set_rollback(True)
        transaction.set_rollback(True)
    assert outbox == []


def test_changes_of_a_transaction_cost_a_query_for_each_path(
    outbox: Outbox, invoice: Invoice
) -> None:
    for _ in range(20):
        Invoice.objects.create(customer=invoice.customer, clerk=invoice.clerk)
    outbox.clear()
    shown = (invoice.customer, invoice.clerk, invoice.customer, invoice.customer.company)
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        for row in shown:
            with transaction.atomic():
                rename(row)
        invoice.save()

    read = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    # the row itself; then for each path the keys of rows, and the rows
    assert len(read) == 1 + 2 * 3
    assert len(outbox) == 2 * 21
    assert {tuple(data["data"]) for _, data in outbox} == {("new", "new", "new")}


def test_more_rows_than_the_limit_are_loaded_again(
    outbox: Outbox,
    invoice: Invoice,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(follows, "LIMIT", 3)
    for _ in range(3):
        Invoice.objects.create(customer=invoice.customer)
    outbox.clear()

    rename(invoice.customer)

    reload = {"op": "put", "key": ""}
    channel = f"customer:{invoice.customer_id}:invoices"
    assert channel in [name for name, _ in outbox]
    assert [data for _, data in outbox] == [reload] * 4
    assert "More than 3 rows of Invoice show rows of Customer" in caplog.text
    outbox.clear()

    invoice.customer.delete()
    assert [data for name, data in outbox if name == channel] == [reload]


@pytest.fixture
def durable(settings: Any) -> None:
    """The channels of customers are durable, those of invoices are not."""
    namespaces = [{"name": "customer", "durable": True, **KEPT}, {"name": "invoice", **KEPT}]
    settings.REALTIME = OPTIONS | {"namespaces": namespaces}


@pytest.mark.parametrize("limit", [3, 1])
def test_durable_channels_have_it_in_the_transaction(
    durable: None, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    customer = Customer.objects.create(name="Ann")
    invoices = [Invoice.objects.create(customer=customer) for _ in range(2)]
    Pending.objects.all().delete()
    monkeypatch.setattr(follows, "LIMIT", limit)
    keys = [str(each.pk) for each in invoices]
    expected = [{"op": "put", "key": key, "data": ["new", "", ""]} for key in keys]
    if limit == 1:
        expected = [{"op": "put", "key": ""}]

    with transaction.atomic():
        rename(customer)
        written = Pending.objects.order_by("id").values_list("channel", "data")
        assert [(channel, json.loads(data)) for channel, data in written] == [
            (f"customer:{customer.pk}:invoices", data) for data in expected
        ]

    assert Pending.objects.count() == len(expected)
    last = realtime.history(f"invoice:{keys[0]}")[-1]
    assert last["data"] == expected[0]


@pytest.mark.parametrize(
    ("paths", "error"),
    [
        (["nobody"], FieldDoesNotExist),
        (["customer__nobody"], FieldDoesNotExist),
        (["id"], ValueError),
        (["customer__invoice"], ValueError),
        (["customer__name"], ValueError),
        ("customer", TypeError),
    ],
    ids=str,
)
def test_mistake_in_what_is_followed_is_said(paths: Any, error: type[Exception]) -> None:
    kind = type("A", (Feed,), {"channels": ["a:{pk}"], "only_ids": True, "follows": paths})
    with pytest.raises(error):
        LiveFeed(Invoice, kind)
