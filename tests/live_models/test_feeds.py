"""Feeds: what is published of a row, and mistakes in declarations."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models import F
from django.utils import translation
from rest_framework import serializers

from realtime import live
from realtime.live.rows.channels import pattern_of
from realtime.live.rows.feeds import Feed, LiveFeed
from realtime.payload import value
from tests.live_models.shop.models import Express, Node, Order, Tag

pytestmark = pytest.mark.django_db(transaction=True)


def feed(**attributes: Any) -> LiveFeed:
    """A feed without subscribers."""
    return LiveFeed(Order, type("A", (Feed,), {"channels": ["order:{pk}"], **attributes}))


def shown(order: Order, **attributes: Any) -> dict[str, Any]:
    """What a page gets of a row."""
    found: dict[str, Any] = value(feed(**attributes).put(order).json)
    return found


@pytest.fixture
def order() -> Order:
    made = Order.objects.create(team="7", title="<b>", total=Decimal("1.5"))
    made.tags.add(Tag.objects.create(name="urgent"))
    return Order.objects.get(pk=made.pk)


class OrderSerializer(serializers.Serializer[Order]):
    title = serializers.CharField()


SHOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fragment": (
        {"fragment": "shop/order.html"},
        {"html": '<li data-key="{pk}">&lt;b&gt;</li>\n'},
    ),
    "context": (
        {
            "fragment": "shop/order.html",
            "context": lambda self, row: {"order": {"pk": 5, "title": "other"}},
        },
        {"html": '<li data-key="5">other</li>\n'},
    ),
    "serializer": ({"serializer": OrderSerializer}, {"data": {"title": "<b>"}}),
    "function": ({"serializer": lambda row: [row.title]}, {"data": ["<b>"]}),
    "fragment and fields": (
        {"fragment": "shop/order.html", "fields": ["title"]},
        {"html": '<li data-key="{pk}">&lt;b&gt;</li>\n', "data": {"title": "<b>"}},
    ),
    "only ids": ({"only_ids": True}, {}),
}
"""Attributes of a feed, and what is published besides the operation and the key."""


@pytest.mark.parametrize(("attributes", "expected"), SHOWN.values(), ids=SHOWN)
def test_row_is_shown_as_its_feed_says(
    order: Order, attributes: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = shown(order, **attributes)
    if "html" in expected:
        found["html"] = found["html"].replace(f'"{order.pk}"', '"{pk}"')
    assert found == {"op": "put", "key": str(order.pk)} | expected


def test_fields_are_values_and_keys(order: Order) -> None:
    (tag,) = order.tags.all()
    found = shown(order, fields=["pk", "title", "total", "tags"])
    assert found["data"] == {"pk": order.pk, "title": "<b>", "total": "1.50", "tags": [tag.pk]}


def test_foreign_key_is_its_key() -> None:
    express = Express.objects.create(team="7")
    kind = type("A", (Feed,), {"channels": ["order:{pk}"], "fields": ["order_ptr", "courier"]})
    found = value(LiveFeed(Express, kind).put(express).json)
    assert found["data"] == {"order_ptr": express.pk, "courier": ""}


def test_language_of_the_visitor_who_changes_a_row_is_that_of_no_other(order: Order) -> None:
    with translation.override("de"):
        found = shown(order, fragment="shop/language.html")
    assert found["html"].strip() == "en-us"


FAILURES: dict[str, dict[str, Any]] = {
    "template": {"fragment": "shop/none.html"},
    "field": {"fields": ["nothing"]},
    "function": {"serializer": lambda row: 1 / 0},
    "no JSON": {"serializer": lambda row: object()},
}


@pytest.mark.parametrize("attributes", FAILURES.values(), ids=FAILURES)
def test_row_that_cannot_be_shown_is_fetched_by_the_page(
    order: Order, caplog: pytest.LogCaptureFixture, attributes: dict[str, Any]
) -> None:
    assert shown(order, **attributes) == {"op": "put", "key": str(order.pk)}
    assert "cannot publish what" in caplog.text


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "no channels": ({"channels": []}, ValueError),
    "one channel": ({"channels": "order:{pk}"}, ValueError),
    "unknown field": ({"channels": ["order:{nothing}"]}, FieldDoesNotExist),
    "relation to many": ({"channels": ["order:{tags}"]}, ValueError),
    "star": ({"channels": ["order:*"]}, ValueError),
    "braces": ({"channels": ["order:{pk"]}, ValueError),
    "no text": ({"channels": [5]}, TypeError),
    "nothing shown": ({}, ValueError),
    "only ids and more": ({"only_ids": True, "fields": ["title"]}, ValueError),
    "fields and serializer": ({"fields": ["title"], "serializer": OrderSerializer}, ValueError),
    "fields as text": ({"fields": "title"}, TypeError),
}


@pytest.mark.parametrize(("attributes", "error"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_in_a_feed_is_said_at_start(
    attributes: dict[str, Any], error: type[Exception]
) -> None:
    shows = (
        {}
        if attributes.keys() & {"fields", "only_ids"} or not attributes
        else {"fragment": "shop/order.html"}
    )
    with pytest.raises(error):
        feed(**shows, **attributes)


def test_only_models_and_feeds_are_registered() -> None:
    class Abstract(models.Model):
        class Meta:
            abstract = True
            app_label = "shop"

    for wrong in (5, Feed, Abstract, models.Model):
        with pytest.raises(TypeError):
            live.model(wrong)
    with pytest.raises(TypeError):
        live.model(Order)(Order)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("text", "model", "value", "name"),
    [
        ("order:{pk}", Order, "07", "order:7"),
        ("order:{pk}", Order, 7, "order:7"),
        ("order:{pk}", Order, "x", None),
        ("order:{pk}", Order, None, None),
        ("nodes:{pk}", Node, "A" * 32, "nodes:aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"),
        ("team:{team}:orders", Order, 7, "team:7:orders"),
        ("team:{team}:orders", Order, F("title"), None),
    ],
)
def test_channel_has_the_spelling_of_the_database(
    text: str, model: Any, value: object, name: str | None
) -> None:
    """Code may have set another one: the row is looked for where it was."""
    pattern = pattern_of(text, model)
    [field] = pattern.fields.values()
    assert pattern.name({field.attname: value}) == name
