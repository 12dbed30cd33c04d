"""The service and the feeds of all tests of live HTML, with the memory engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from realtime.hooks.registry import registry
from realtime.live.rows import permission
from realtime.live.rows.feeds import feeds
from realtime.testing import Outbox, TestService, capture
from tests.live_models.shop import rows
from tests.live_models.shop.models import Order

KEPT = {"history_size": 1000, "history_lifetime": 100, "force_recovery": True}
OPTIONS: dict[str, Any] = {
    "token_hmac_secret_key": "a secret of at least thirty-two bytes",
    "page_margin": 0,
    "namespaces": [
        {"name": "order", **KEPT},
        {"name": "team", **KEPT},
        {"name": "nodes"},
        {"name": "invoice", **KEPT},
        {"name": "customer", **KEPT},
        {"name": "plain"},
    ],
}


# importing `rows` has registered its feeds, here or earlier, in a module of tests
SHOP = dict(feeds._feeds)
feeds._feeds.clear()
registry.subscribe[:] = [each for each in registry.subscribe if each[1] is not permission.decide]
registry.guarded.clear()


@pytest.fixture(autouse=True)
def shop() -> Iterator[None]:
    """The feeds of the shop. Other tests of the process have none of them."""
    before, guarded = list(registry.subscribe), list(registry.guarded)
    feeds._feeds.update(SHOP)
    for feed in feeds.all():
        permission.guard(feed)
    rows.allowed.clear()
    yield
    feeds._feeds.clear()
    registry.subscribe[:], registry.guarded[:] = before, guarded


@pytest.fixture(autouse=True)
def service(shop: None, settings: Any) -> Iterator[TestService]:
    """The service of a site with channels for rows."""
    settings.REALTIME = OPTIONS
    with TestService() as started:
        yield started


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    """What is published, in the order of time."""
    with capture() as captured:
        yield captured


@pytest.fixture
def order(outbox: Outbox) -> Order:
    """A row that was loaded."""
    made = Order.objects.create(team="7")
    outbox.clear()
    return Order.objects.get(pk=made.pk)
