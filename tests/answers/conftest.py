"""Options of the tests of answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from realtime.config import sources
from tests.answers.installing import installed
from tests.redis_server import RedisServer

CHAT = {
    "name": "chat",
    "history_size": 100,
    "history_lifetime": 600,
    "allow_publish_for_client": True,
}


@pytest.fixture
def over_redis(redis_server: RedisServer, unique: str) -> Iterator[None]:
    """This process is a worker beside a service with Redis."""
    sources.configuration.override(
        redis_url=redis_server.url, redis_prefix=unique, namespaces=[CHAT], answers_per_user=3
    )
    with installed():
        yield
    sources.configuration.override()
