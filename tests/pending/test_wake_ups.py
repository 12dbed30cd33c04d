"""Wake-ups through Redis: a node hears them as soon as Redis lets it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from realtime.config.sources import configuration
from realtime.hooks.registry import registry
from realtime.metrics import Outage
from realtime.pending import rows
from realtime.pending.rows import Rows
from realtime.serving import Serving
from tests.redis_server import RedisServer

TIMEOUT = 30.0


async def test_node_that_starts_while_redis_is_away_subscribes_later(
    own_redis: Callable[..., RedisServer],
    options: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(rows, "SUBSCRIBE_INTERVAL", 0.01)
    caplog.set_level(logging.WARNING, "realtime.pending")
    redis = own_redis()
    options(redis_url=redis.url)
    serving = Serving(configuration, registry)
    node = await serving.start()
    heard = asyncio.Event()
    node.on_wake_up = heard.set
    try:
        redis.kill()
        await Rows(serving)._subscribe(node, Outage())
        assert "not woken" in caplog.text
        redis.start()

        async with asyncio.timeout(TIMEOUT):
            while not heard.is_set():
                await node.wake_relays()
                await asyncio.sleep(0)
    finally:
        await serving.stop()

    warnings = [record for record in caplog.records if record.name == "realtime.pending"]
    assert len(warnings) == 1
