"""Blocked users over several nodes: one dies, one starts later, and Redis hangs or is lost."""

from __future__ import annotations

import time

from tests.conftest import connection_token
from tests.live.api_methods import result
from tests.live.clusters import SERVICE, Cluster, OwnRedis
from tests.live.configurations import FORCED, Connect
from tests.protocol_client import open_client
from tests.server import Server, wait_until


async def refused(server: Server, user: str) -> tuple[int, str]:
    """How a client of the user is closed that connects."""
    async with open_client(server.socket, connected=False) as client:
        await client.send("connect", {"token": connection_token(user)})
        return await client.closed()


async def test_user_stays_blocked_whatever_dies(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str
) -> None:
    redis = own_redis()
    one, other = cluster(2, redis, **SERVICE)
    client, bystander = await connect(other, user=unique), await connect(other)

    end = int(time.time()) + 1000
    assert result(one, "block_user", user=unique, expire_at=end) == {}
    assert await client.closed() == FORCED
    at_both = [await refused(server, unique) for server in (one, other)]

    one.kill()
    (fresh,) = cluster(1, redis, **SERVICE)
    at_fresh = await refused(fresh, unique)
    redis.freeze()
    while_frozen = [await refused(server, unique) for server in (other, fresh)]
    assert await bystander.result("ping") == {}
    redis.resume()
    redis.restart(empty=True)
    wait_until(lambda: result(other, "blocked_users")["users"] != [], what="the list")

    assert [*at_both, at_fresh, *while_frozen] == [FORCED] * 5
    assert result(fresh, "blocked_users") == {"users": [{"user": unique, "expire_at": end}]}
