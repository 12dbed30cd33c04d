"""Fixtures of the tests of what is of Redis only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realtime.engine.redis.layer import RedisChannelLayer
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import RedisBench
from tests.redis_server import RedisServer


@pytest.fixture
async def engine(open_redis: OpenRedisBench) -> RedisBench:
    """The engine over one Redis."""
    bench: RedisBench = await open_redis()
    return bench


@pytest.fixture
async def open_layer(
    redis_servers: list[RedisServer], unique: str
) -> AsyncIterator[Callable[..., Any]]:
    """A layer with a prefix of this test's own: `open_layer(shards=2, capacity=5)`."""
    layers: list[Any] = []

    def make(
        kind: Callable[..., Any] = RedisChannelLayer, *, shards: int = 1, **options: Any
    ) -> Any:
        hosts = [server.url for server in redis_servers[:shards]]
        layers.append(kind(**{"hosts": hosts, "prefix": unique} | options))
        return layers[-1]

    yield make
    for layer in layers:
        await layer.flush()
        if isinstance(layer, RedisChannelLayer):
            layer.bus.close_blocking()
