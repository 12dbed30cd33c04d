"""Rows as entries of a map: filled from the database, and changed as rows change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import realtime
from realtime.live.rows import batches, filling
from realtime.live.rows.checks import check_maps
from realtime.live.rows.feeds import LiveFeed, feeds
from realtime.testing import TestService
from tests.live_models.conftest import KEPT
from tests.live_models.parts import ask
from tests.live_models.shop import rows
from tests.live_models.shop.models import Order

pytestmark = pytest.mark.django_db(transaction=True)

CHANNEL = "team:7:orders"
KEYED = {"name": "team", "map": "persistent"}


@pytest.fixture(autouse=True)
def service(shop: None, settings: Any) -> Iterator[TestService]:
    """The service of a site whose teams have a map of their orders."""
    settings.REALTIME = {
        "token_hmac_secret_key": "a secret of at least thirty-two bytes",
        "namespaces": [{"name": "order", **KEPT}, KEYED],
    }
    filling._filled.clear()
    with TestService() as started:
        rows.allowed.add(("17", "7"))
        yield started


def entries() -> dict[str, Any]:
    return {entry.key: entry.data["title"] for entry in realtime.map(CHANNEL).items()}


def test_subscriber_has_the_rows_that_there_were(service: TestService) -> None:
    kept, other, _ = (Order.objects.create(team=team, title=team) for team in ("7", "8", "7"))
    Order.objects.filter(pk=kept.pk).update(title="silent")
    realtime.map(CHANNEL).remove(str(kept.pk))  # as if it was written before this process
    with service.client("17") as client:
        client.subscribe(CHANNEL)
        expected = {str(each.pk): each.title for each in Order.objects.filter(team="7")}
        assert entries() == expected
        assert expected[str(kept.pk)] == "silent"
        assert str(other.pk) not in expected


def test_changes_are_changes_of_entries(service: TestService) -> None:
    first, second = (Order.objects.create(team="7", title="new") for _ in range(2))
    first.title = "changed"
    first.save()
    assert entries() == {str(first.pk): "changed", str(second.pk): "new"}

    first.team = "8"
    first.save()
    key = str(second.pk)
    second.delete()
    assert entries() == {}
    assert realtime.map("team:8:orders").get(str(first.pk)) is not None
    assert realtime.map(CHANNEL).get(key) is None


def test_refused_client_fills_no_map(service: TestService) -> None:
    order = Order.objects.create(team="7")
    realtime.map(CHANNEL).remove(str(order.pk))
    assert not ask(CHANNEL, "18")
    assert entries() == {}


def test_map_is_filled_again_when_the_engine_has_lost_it(service: TestService) -> None:
    order = Order.objects.create(team="7")
    assert ask()
    realtime.map(CHANNEL).remove(str(order.pk))
    assert ask()
    assert entries() == {}, "this process has filled it"
    filling._filled[CHANNEL] = "the epoch before"
    assert ask()
    assert list(entries()) == [str(order.pk)]


@pytest.mark.parametrize("change", ["deleted", "moved", "changed"])
def test_change_while_the_map_is_filled_wins(
    service: TestService, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The row is read, then it changes, then the old row is put."""
    order = Order.objects.create(team="7", title="old")
    key = str(order.pk)
    realtime.map(CHANNEL).remove(key)
    put = filling._send

    def late(publications: Any) -> Any:
        monkeypatch.setattr(filling, "_send", put)
        match change:
            case "deleted":
                order.delete()
            case "moved":
                order.team = "8"
                order.save()
            case "changed":
                order.title = "new"
                order.save()
        return put(publications)

    monkeypatch.setattr(filling, "_send", late)
    assert ask()
    assert entries() == ({key: "new"} if change == "changed" else {})


def test_row_that_comes_back_while_it_is_taken_back_stays(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order.objects.create(team="7", title="old")
    realtime.map(CHANNEL).remove(str(order.pk))
    send = filling._send

    def late(publications: Any) -> Any:
        order.team, order.title = ("7", "new") if publications[0].removed else ("8", "old")
        order.save()
        return send(publications)

    monkeypatch.setattr(filling, "_send", late)
    assert ask()
    assert entries() == {str(order.pk): "new"}


def test_rows_beyond_one_chunk_are_put(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "CHUNK", 2)
    Order.objects.bulk_create([Order(team="7", title=str(number)) for number in range(5)])
    assert ask()
    assert sorted(entries().values()) == list("01234")


def test_check_wants_persistent_maps_of_data(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_maps() == []
    settings.REALTIME |= {"namespaces": [{"name": "order", **KEPT}, KEYED | {"map": "recoverable"}]}
    [feed] = feeds.of(Order)
    monkeypatch.setattr(feed.kind, "only_ids", True)
    found = check_maps()
    assert [each.id for each in found] == ["realtime.E058"] * 2
    assert "expire" in found[0].msg
    assert "no data" in found[1].msg
    monkeypatch.setattr(feed.kind, "only_ids", False)
    settings.REALTIME |= {"namespaces": [{"name": "order", **KEPT}, KEYED]}
    twice: dict[Any, Any] = {Order: [feed, LiveFeed(Order, feed.kind)]}
    monkeypatch.setattr(feeds, "_feeds", twice)
    assert ["several feeds" in each.msg for each in check_maps()] == [True, True]
