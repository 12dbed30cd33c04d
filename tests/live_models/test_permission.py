"""may_view: who may subscribe to the channels of rows, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from realtime import hooks, live, publish
from realtime.errors import PermissionDenied
from realtime.hooks import Allowed, SubscribeRequest
from realtime.hooks.registry import Registry, registry
from realtime.live import ainvalidate, invalidate
from realtime.live.rows import permission
from realtime.live.rows.feeds import Feed, Feeds, LiveFeed, feeds
from realtime.testing import TestService
from tests.live_models.parts import ask
from tests.live_models.shop import rows
from tests.live_models.shop.models import Order

pytestmark = pytest.mark.django_db(transaction=True)

CHANNEL = "team:7:orders"


@pytest.fixture
def quick_recheck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows.LiveOrder, "recheck", 0.02)


@pytest.fixture
def more_feeds(monkeypatch: pytest.MonkeyPatch) -> Feeds:
    """Feeds of a test alone."""
    found = Feeds()
    monkeypatch.setattr(permission, "feeds", found)
    return found


def feed(asked: Any, *channels: str) -> LiveFeed:
    """A feed whose permission is this function."""
    kind: Any = type("A", (Feed,), {"channels": channels or (CHANNEL,), "only_ids": True})
    kind.may_view = None if asked is None else staticmethod(asked)
    return LiveFeed(Order, kind)


def test_client_that_may_view_gets_the_rows(service: TestService) -> None:
    rows.allowed.add(("17", "7"))
    with service.client("17") as client:
        client.subscribe(CHANNEL)
        order = Order.objects.create(team="7")
        assert client.expect(CHANNEL).data["key"] == str(order.pk)


def test_client_that_may_not_view_cannot_subscribe(service: TestService) -> None:
    rows.allowed.add(("17", "7"))
    for user, channel in (
        ("18", CHANNEL),
        ("17", "team:8:orders"),
        ("17", "order:1"),
        ("", CHANNEL),
    ):
        with service.client(user) as client, pytest.raises(PermissionDenied):
            client.subscribe(channel)


def test_coroutine_function_may_decide(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("nodes:all")
    with service.client("18") as client, pytest.raises(PermissionDenied):
        client.subscribe("nodes:all")


def test_client_that_loses_the_right_gets_nothing_more(
    service: TestService, quick_recheck: None
) -> None:
    rows.allowed.update([("17", "7"), ("18", "7")])
    with service.client("17") as loser, service.client("18") as other:
        loser.subscribe(CHANNEL)
        other.subscribe(CHANNEL)

        rows.allowed.remove(("17", "7"))

        loser.expect_unsubscribed(CHANNEL)
        Order.objects.create(team="7")
        other.expect(CHANNEL)
        loser.expect_nothing()


def test_invalidated_right_ends_at_once_and_others_go_on(service: TestService) -> None:
    rows.allowed.update([("17", "7"), ("17", "8")])
    with service.client("17") as client:
        client.subscribe(CHANNEL)
        client.subscribe("team:8:orders")

        rows.allowed.remove(("17", "7"))
        invalidate("17")

        client.expect_unsubscribed(CHANNEL)
        order = Order.objects.create(team="8")
        assert client.expect("team:8:orders").data["key"] == str(order.pk)
        client.expect_nothing()


async def test_coroutines_invalidate(service: TestService) -> None:
    rows.allowed.add(("17", "7"))
    async with service.client("17") as client:
        await client.asubscribe(CHANNEL)
        rows.allowed.clear()
        await ainvalidate(17, CHANNEL)
        await client.aexpect_unsubscribed(CHANNEL)


# answers


@pytest.mark.parametrize("answer", [None, False, 0, "", []], ids=repr)
def test_only_a_true_answer_allows(more_feeds: Feeds, answer: Any) -> None:
    more_feeds.add(feed(lambda request: answer))
    assert ask() is False


def test_channel_without_may_view_or_without_a_feed_is_closed(more_feeds: Feeds) -> None:
    assert ask() is False
    more_feeds.add(feed(None))
    assert ask() is False


def test_every_feed_of_a_channel_must_allow(more_feeds: Feeds) -> None:
    asked: list[Any] = []

    def first(request: SubscribeRequest, team: str) -> bool:
        asked.append(team)
        return True

    more_feeds.add(feed(first, "team:{team}:orders"))
    assert isinstance(ask(), Allowed)
    more_feeds.add(feed(lambda request: request.user == "18", CHANNEL))
    assert ask() is False
    assert isinstance(ask(user="18"), Allowed)
    assert asked == ["7", "7", "7"]


async def test_coroutine_functions_and_functions_decide_together(more_feeds: Feeds) -> None:
    async def slow(request: SubscribeRequest) -> bool:
        return request.user != "19"

    more_feeds.add(feed(slow))
    more_feeds.add(feed(lambda request: request.user != "18"))

    assert isinstance(await ask(), Allowed)
    assert await ask(user="18") is False
    assert await ask(user="19") is False


def test_clients_are_not_asked_about_at_the_same_time(more_feeds: Feeds) -> None:
    more_feeds.add(feed(lambda request: True))
    times = {ask().ttl for _ in range(50)}
    assert len(times) > 10
    assert all(30 <= each <= 40 for each in times)


NAMES = ["order:x", "order:07", "order:+7", "order: 7", "order:7\0", "order:7.0"]


@pytest.mark.parametrize("channel", NAMES)
def test_name_that_no_row_has_is_refused_without_a_question(
    more_feeds: Feeds, channel: str
) -> None:
    """Clients choose names: a query would fail on them, or take them for another row."""
    asked: list[Any] = []

    def may_view(request: SubscribeRequest, pk: str) -> bool:
        asked.append(pk)
        return True

    more_feeds.add(feed(may_view, "order:{pk}"))

    assert ask(channel) is False
    assert asked == []
    assert isinstance(ask("order:7"), Allowed)


# other hooks of the site


def test_hook_of_the_site_does_not_come_first() -> None:
    """Whether it was registered before or after."""
    own = Registry()
    own.add_pattern(own.subscribe, "*", lambda request: True)
    own.add_guard("team:{team}:orders", permission.decide)
    own.add_pattern(own.subscribe, "team:*", lambda request: True)
    own.add_guard("order:{pk}", permission.decide)

    for channel in (CHANNEL, "order:1"):
        found = own.find(own.subscribe, channel)
        assert found is not None
        assert found[0] is permission.decide


def test_hook_of_the_same_pattern_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"team:\{team\}:orders"):
        hooks.subscribe("team:{team}:orders")(lambda request: True)
    own = Registry()
    own.add_pattern(own.subscribe, "a", lambda request: True)
    with pytest.raises(ValueError, match="'a'"):
        own.add_guard("a", permission.decide)


def test_publishing_by_the_site_needs_no_permission(service: TestService) -> None:
    assert publish(CHANNEL, "by hand") is not None
    assert feeds.all()
    assert registry.guarded
    assert live.Feed is Feed
