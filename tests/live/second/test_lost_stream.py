"""A stream that Redis has lost, under the published client of the second generation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.engine.redis.keys import Keys
from tests.js_builds import Build
from tests.js_client import Driver
from tests.js_next import JSON_5, PROTOBUF_5, open_next
from tests.live.second.conftest import OPTIONS
from tests.redis_server import RedisServer
from tests.server import Server

pytest_plugins = ["tests.js_fixtures"]


@pytest.mark.parametrize("build", [JSON_5, PROTOBUF_5], ids=["json", "protobuf"])
async def test_subscription_begins_again_and_the_connection_stays(
    next_driver: Driver,
    cluster: Callable[..., list[Server]],
    redis_server: RedisServer,
    unique: str,
    build: Build,
) -> None:
    (server,) = cluster(1, redis_server, redis_prefix=unique, **OPTIONS)
    client = await open_next(next_driver, build, server.socket)
    await client.connect()
    channel = f"chat:{unique}"
    first = await client.subscribe(channel)
    server.publish(channel, 1)
    assert await client.publication(channel) == 1

    with redis_server.client() as redis:
        redis.delete(*Keys(unique).stream(channel))
    server.publish(channel, 2)
    again = await client.event("subscribed", channel)
    server.publish(channel, 3)

    assert (again["wasRecovering"], again["recovered"]) == (True, False)
    assert again["streamPosition"]["epoch"] != first["streamPosition"]["epoch"]
    assert await client.publication(channel) == 3
    assert [each["code"] for each in client.unread("subscribing", channel)] == [0, 2500]
    assert [each["code"] for each in client.unread("connecting")] == [0]
