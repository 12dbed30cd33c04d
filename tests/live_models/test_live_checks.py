"""System checks of live models."""

from __future__ import annotations

from typing import Any

import pytest

from realtime import hooks
from realtime.live.rows import checks
from realtime.live.rows.feeds import Feed, Feeds, LiveFeed
from tests.live_models.conftest import KEPT, OPTIONS
from tests.live_models.shop.models import Order


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> Feeds:
    """The feeds of a test alone."""
    made = Feeds()
    monkeypatch.setattr(checks, "feeds", made)
    return made


def feed(may_view: Any, *channels: str) -> LiveFeed:
    kind: Any = type(
        "LiveOrder", (Feed,), {"channels": channels or ("order:{pk}",), "only_ids": True}
    )
    kind.may_view = may_view
    return LiveFeed(Order, kind)


def errors() -> list[str]:
    messages = checks.check_may_view()
    assert {message.id for message in messages} <= {"realtime.E051"}
    return [message.msg for message in messages]


def warnings() -> list[tuple[str, Any]]:
    messages = checks.check_ways_around()
    assert {message.id for message in messages} <= {"realtime.W055"}
    return [(message.msg, message.hint) for message in messages]


def test_feed_without_may_view_is_an_error(found: Feeds) -> None:
    found.add(feed(None))
    (message,) = errors()
    assert "LiveOrder: has no may_view" in message


def may_not_be_asked(self: Any, request: Any, pk: str) -> bool:
    return True


@pytest.mark.parametrize("may_view", [lambda request: True, may_not_be_asked])
def test_may_view_that_cannot_be_asked_is_an_error(found: Feeds, may_view: Any) -> None:
    found.add(feed(staticmethod(may_view)))
    (message,) = errors()
    assert "cannot be asked about 'order:{pk}'" in message


def test_channel_that_lists_users_is_an_error(found: Feeds) -> None:
    found.add(feed(staticmethod(lambda request, team: True), "team#{team}"))
    (message,) = errors()
    assert "never asked about 'team#{team}'" in message


def test_feed_that_is_guarded_is_no_error(found: Feeds) -> None:
    found.add(
        feed(staticmethod(lambda request, pk=None, team=None: True), "order:{pk}", "team:{team}")
    )
    assert errors() == []
    assert warnings() == []


WAYS = ["allow_publish_for_client", "allow_publish_for_subscriber", "allow_history_for_client"]


@pytest.mark.parametrize("option", WAYS)
def test_way_around_may_view_is_a_warning(found: Feeds, settings: Any, option: str) -> None:
    settings.REALTIME = OPTIONS | {"namespaces": [{"name": "order", **KEPT, option: True}]}
    found.add(feed(staticmethod(lambda request, pk: True)))
    ((message, hint),) = warnings()
    assert "'order:{pk}', whatever may_view says" in message
    assert hint == f"Turn {option} off for these channels."


def test_publish_hook_of_the_site_is_no_way_around(
    found: Feeds, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = {"name": "order", **KEPT, "allow_publish_for_client": True}
    settings.REALTIME = OPTIONS | {"namespaces": [namespace]}
    found.add(feed(staticmethod(lambda request, pk: True)))
    monkeypatch.setattr(hooks.registry.registry, "publish", [])
    hooks.publish("order:{pk}")(lambda request: False)
    assert warnings() == []


def test_insecure_clients_are_a_warning(found: Feeds, settings: Any) -> None:
    settings.REALTIME = OPTIONS | {"client_insecure": True}
    found.add(feed(staticmethod(lambda request, pk: True)))
    ((message, _),) = warnings()
    assert "do everything" in message


def test_feed_in_no_namespace_is_for_another_check(found: Feeds) -> None:
    found.add(feed(staticmethod(lambda request, pk: True), "unknown:{pk}"))
    assert errors() == []
    assert warnings() == []
