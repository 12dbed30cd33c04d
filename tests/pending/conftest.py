"""Databases and options of the tests of pending publications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from realtime.config import sources
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from tests.pending.relaying import Relaying

NAMESPACES = [
    {"name": "orders", "history_size": 1000, "history_lifetime": 300},
    {"name": "bills", "history_size": 1000, "history_lifetime": 300, "durable": True},
    {"name": "seats", "map": "recoverable"},
]


@pytest.fixture
def options(redis_server: RedisServer, unique: str) -> Iterator[Callable[..., None]]:
    """Options of this process, with Redis; call it for others."""

    def override(**others: Any) -> None:
        given = {"redis_url": redis_server.url, "redis_prefix": unique, "namespaces": NAMESPACES}
        sources.configuration.override(**given | others)

    override()
    yield override
    sources.configuration.override()


@pytest.fixture
def relay() -> Iterator[Relaying]:
    """A relay that looks when the test says so."""
    from tests.pending.relaying import Relaying  # its models, when Django has loaded its apps

    made = Relaying()
    yield made
    made.close()
