"""What is published of rows that change: the last state of each, once, after the commit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.core.serializers import deserialize, serialize
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Concat
from django.test.utils import CaptureQueriesContext

from realtime.testing import Outbox
from tests.live_models.parts import channels_of, everywhere, put, removed
from tests.live_models.shop.models import Express, Node, Order, Plain, Quick, Tag

pytestmark = pytest.mark.django_db(transaction=True)


def test_created_row_goes_into_each_of_its_channels(outbox: Outbox) -> None:
    order = Order.objects.create(team="7")
    assert outbox == everywhere(order)


def test_deleted_row_is_removed(outbox: Outbox, order: Order) -> None:
    key, channels = order.pk, channels_of(order)
    order.delete()
    assert outbox == [(channel, removed(key)) for channel in channels]


def test_deleted_queryset_is_removed(outbox: Outbox, order: Order) -> None:
    Order.objects.filter(pk=order.pk).delete()
    assert outbox == [(channel, removed(order.pk)) for channel in channels_of(order)]


def test_models_without_feed_publish_nothing(outbox: Outbox) -> None:
    Plain.objects.create()
    Tag.objects.create(name="a")
    assert outbox == []


# channels


def test_row_that_moves_is_removed_where_it_was(outbox: Outbox, order: Order) -> None:
    order.team = "8"
    order.save()
    assert outbox == [*everywhere(order), ("team:7:orders", removed(order.pk))]
    outbox.clear()
    order.save()
    assert outbox == everywhere(order)


def test_new_object_knows_where_it_was_saved(outbox: Outbox) -> None:
    order = Order.objects.create(team="7")
    order.team = "8"
    order.save()
    assert outbox[-1] == ("team:7:orders", removed(order.pk))


def test_row_without_a_value_has_no_channel_of_the_pattern(outbox: Outbox, order: Order) -> None:
    order.team = None
    order.save()
    assert outbox == [
        (f"order:{order.pk}", put(order)),
        ("team:7:orders", removed(order.pk)),
    ]


@pytest.mark.parametrize("team", ["7:orders", "7#17", "\u00e4", "a" * 20 + "b"])
def test_value_that_leads_elsewhere_publishes_nothing_there(
    outbox: Outbox, caplog: pytest.LogCaptureFixture, team: str, settings: Any
) -> None:
    settings.REALTIME = settings.REALTIME | {"channel_max_length": 25}
    order = Order.objects.create(team=team)
    assert outbox == [(f"order:{order.pk}", put(order))]
    assert "is no channel of 'team:{team}:orders'" in caplog.text


def test_row_that_is_hidden_is_removed(outbox: Outbox, order: Order) -> None:
    """The default manager says which rows there are, as for the page."""
    order.hidden = True
    order.save()
    assert outbox == [(channel, removed(order.pk)) for channel in channels_of(order)]


def test_object_that_becomes_another_row_is_removed_nowhere(outbox: Outbox, order: Order) -> None:
    first = order.pk
    order.pk = None
    order.team = "8"
    order.save()
    assert outbox == everywhere(order)
    assert order.pk != first


Way = Callable[[Order], Order]


def refreshed(order: Order) -> Order:
    Order.objects.filter(pk=order.pk).update(team="9")
    order.refresh_from_db()
    return order


WAYS: dict[str, tuple[Way, str]] = {
    "copied": (copy.copy, "7"),
    "pickled": (lambda order: pickle.loads(pickle.dumps(order)), "7"),
    "refreshed": (refreshed, "9"),
    "proxy": (lambda order: Quick.objects.get(pk=order.pk), "7"),
}


@pytest.mark.parametrize(("way", "team"), WAYS.values(), ids=WAYS)
def test_object_remembers_where_its_row_was(
    outbox: Outbox, order: Order, way: Way, team: str
) -> None:
    found = way(order)
    found.team = "8"
    found.save()
    assert outbox == [*everywhere(found), (f"team:{team}:orders", removed(found.pk))]


def test_place_that_was_not_saved_is_not_remembered(outbox: Outbox, order: Order) -> None:
    with transaction.atomic():
        order.team = "8"
        order.save()
        order.team = "9"
    order.refresh_from_db(fields=["title"])
    outbox.clear()
    order.save()
    assert outbox == [*everywhere(order), ("team:8:orders", removed(order.pk))]


def test_place_that_is_loaded_late_is_remembered(outbox: Outbox, order: Order) -> None:
    found = Order.objects.only("title").get(pk=order.pk)
    assert found.team == "7"
    found.team = "8"
    found.save()
    assert outbox == [*everywhere(found), ("team:7:orders", removed(found.pk))]


# what databases know better than objects


def test_state_is_that_of_the_database(outbox: Outbox, order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(total=5)
    order.title = Concat(Value("a"), Value("b"))
    order.save(update_fields=["title"])
    assert outbox == everywhere(order, title="ab", total="5.00")


def test_deferred_fields_are_shown_and_not_read_before(outbox: Outbox, order: Order) -> None:
    found = Order.objects.only("title").get(pk=order.pk)
    found.title = "paid"
    with CaptureQueriesContext(connection) as queries:
        found.save()
    assert outbox == everywhere(order, title="paid")
    # update, the row, and its tags
    assert len(queries) == 3


def test_values_that_were_not_saved_are_not_published(outbox: Outbox, order: Order) -> None:
    with transaction.atomic():
        order.title = "saved"
        order.save()
        order.title = "not saved"
    assert outbox == everywhere(order, title="saved")


def test_key_that_was_given_as_text_is_that_of_the_row(outbox: Outbox, order: Order) -> None:
    same = Order(pk=str(order.pk), team="7", title="as text")
    same.save()
    assert outbox == everywhere(order, title="as text")


# relations


def test_relation_to_many_is_a_change_from_either_side(outbox: Outbox, order: Order) -> None:
    tag = Tag.objects.create(name="urgent")
    changes: list[tuple[Callable[[], Any], list[int]]] = [
        (lambda: order.tags.add(tag), [tag.pk]),
        (lambda: order.tags.remove(tag), []),
        (lambda: tag.orders.add(order), [tag.pk]),
        (lambda: tag.orders.clear(), []),
        (lambda: order.tags.set([tag]), [tag.pk]),
        (lambda: order.tags.clear(), []),
    ]
    for change, tags in changes:
        change()
        assert outbox == everywhere(order, tags=tags)
        outbox.clear()


def test_neighbours_change_both(outbox: Outbox) -> None:
    one, two, three = (Node.objects.create() for _ in range(3))
    outbox.clear()

    def told() -> list[str]:
        found = sorted(data["key"] for _, data in outbox)
        outbox.clear()
        return found

    both = sorted(str(node.pk) for node in (one, two))
    one.neighbours.add(two)
    assert told() == both
    two.neighbours.clear()
    assert told() == both
    three.neighbours.clear()
    assert told() == [str(three.pk)]


def test_only_ids_are_keys_alone(outbox: Outbox) -> None:
    node = Node.objects.create()
    assert outbox == [("nodes:all", {"op": "put", "key": str(node.pk)})]


# inheritance


def test_proxy_is_the_same_row(outbox: Outbox, order: Order) -> None:
    quick = Quick.objects.get(pk=order.pk)
    quick.title = "quick"
    quick.save()
    assert outbox == everywhere(order, title="quick")
    outbox.clear()
    quick.delete()
    assert outbox == [(channel, removed(order.pk)) for channel in channels_of(order)]


def test_row_of_an_inheriting_model_is_one_of_the_model(outbox: Outbox) -> None:
    express = Express.objects.create(team="7", courier="Ann")
    assert outbox == everywhere(express)
    outbox.clear()

    found = Express.objects.get(pk=express.pk)
    found.team = "8"
    found.save()
    assert outbox == [*everywhere(found), ("team:7:orders", removed(found.pk))]
    outbox.clear()

    found.delete(keep_parents=True)
    assert outbox == [*everywhere(express)[:1], ("team:8:orders", put(express))]
    outbox.clear()

    Order.objects.get(pk=express.pk).delete()
    assert outbox == [
        (f"order:{express.pk}", removed(express.pk)),
        ("team:8:orders", removed(express.pk)),
    ]


def test_relations_in_a_fixture_are_loaded_without_notice(outbox: Outbox, order: Order) -> None:
    tag = Tag.objects.create(name="new")
    order.tags.add(tag)
    text = serialize("json", [order])
    order.tags.clear()
    outbox.clear()

    [entry] = deserialize("json", text)
    entry.save()
    assert list(order.tags.all()) == [tag]
    assert outbox == []

    loaded: Any = entry.object
    loaded.save()
    loaded.tags.clear()
    assert [data["data"]["tags"] for _, data in outbox] == [[tag.pk], [tag.pk], [], []]


@pytest.mark.parametrize(
    "delete", [lambda tag: tag.delete(), lambda tag: Tag.objects.all().delete()]
)
def test_row_goes_out_when_what_it_refers_to_is_deleted(
    outbox: Outbox, order: Order, delete: Callable[[Tag], Any]
) -> None:
    tag = Tag.objects.create(name="new")
    order.tags.add(tag)
    outbox.clear()
    delete(tag)
    assert outbox == everywhere(order)


def test_neighbours_of_a_deleted_row_go_out(outbox: Outbox) -> None:
    node, neighbour = Node.objects.create(), Node.objects.create()
    node.neighbours.add(neighbour)
    key = node.pk
    outbox.clear()

    node.delete()

    assert sorted(outbox, key=str) == sorted(
        [
            ("nodes:all", {"op": "put", "key": str(neighbour.pk)}),
            ("nodes:all", removed(key)),
        ],
        key=str,
    )
