"""The permissions that docs/redis.md gives to the service are enough, and no more than its keys."""

from __future__ import annotations

from collections.abc import Callable

from tests.engine.conftest import OpenRedisBench
from tests.engine.redis.permissions import EVERYTHING, allow, permissions, use_everything
from tests.redis_server import RedisServer


async def test_documented_permissions_are_enough(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench, unique: str
) -> None:
    server = own_redis()
    allow(server, "default", permissions(unique))
    await use_everything(await open_redis(servers=[server], prefix=unique, meta=EVERYTHING))
