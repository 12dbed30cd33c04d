"""A node among others ends by SIGTERM: clients are told, nothing of it stays behind.

Design, section 5; protocol reference, 2.10 and 5.3.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from tests.live.clusters import (
    SERVICE,
    Cluster,
    OwnRedis,
    channels,
    groups,
    nodes,
    presence,
)
from tests.live.configurations import SHUTDOWN, Connect
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

CLIENTS = 300

# uvicorn ends itself by the signal it was sent, when it has done everything else
STATUSES: Mapping[str, set[int]] = {"daphne": {0}, "uvicorn": {0, -signal.SIGTERM}}
"""Server → its exit statuses."""


class Ending(NamedTuple):
    """How a server ended."""

    status: int
    closes: list[tuple[int, str]]
    """What each client was told."""


async def open_clients(
    connect: Connect, server: Server, names: Sequence[str]
) -> list[ProtocolClient]:
    """Connect many clients, subscribed to one channel each."""

    async def open_one(number: int) -> ProtocolClient:
        client: ProtocolClient = await connect(server, user=f"{number % 50}")
        await client.result("subscribe", {"channel": names[number % len(names)]})
        return client

    clients: list[ProtocolClient] = []
    for start in range(0, CLIENTS, 50):
        clients += await asyncio.gather(*map(open_one, range(start, start + 50)))
    return clients


async def end(server: Server, clients: Sequence[ProtocolClient]) -> Ending:
    """Send SIGTERM, and watch. Fails where the end or a close takes longer than tests wait.

    No shorter time is demanded: the clients, in this process, are as slow as the machine.
    """
    ended = asyncio.create_task(asyncio.to_thread(server.terminate))
    closes = await asyncio.gather(*(client.closed() for client in clients))
    return Ending(await ended, closes)


@pytest.mark.parametrize("server_name", STATUSES)
async def test_node_that_ends_tells_its_clients_and_leaves_nothing(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str, server_name: str
) -> None:
    redis = own_redis()
    one, two = cluster(2, redis, server=server_name, **SERVICE)
    names = [f"present:{unique}{number}" for number in range(10)]
    wait_until(lambda: len(nodes(one)) == len(nodes(two)) == 2, what="two nodes")
    of_all_nodes = groups(redis)
    assert set(of_all_nodes.values()) == {2}
    clients = await open_clients(connect, two, names)
    assert channels(one, unique) == names
    assert len(groups(redis)) == len(of_all_nodes) + len(names)

    ending = await end(two, clients)

    assert ending.closes == [SHUTDOWN] * CLIENTS
    assert ending.status in STATUSES[server_name]
    [node] = nodes(one)
    assert node["num_clients"] == 0
    assert channels(one, unique) == []
    assert [presence(one, name) for name in names] == [{}] * len(names)
    assert groups(redis) == dict.fromkeys(of_all_nodes, 1)
    assert redis.pubsub_connections() == 1
    keys = redis.keys()
    assert not [key for key in keys if "presence" in key]
    assert "Traceback" not in two.log


async def test_nodes_end_in_time_and_tell_their_clients_though_redis_is_frozen(
    cluster: Cluster, own_redis: OwnRedis, connect: Connect, unique: str
) -> None:
    redis = own_redis()
    servers = [cluster(1, redis, server=name, **SERVICE)[0] for name in STATUSES]
    names = [f"joined:{unique}", f"recover:{unique}"]
    clients = [await open_clients(connect, server, names) for server in servers]
    redis.freeze()
    endings = await asyncio.gather(*map(end, servers, clients))
    for ending, statuses in zip(endings, STATUSES.values(), strict=True):
        assert ending.closes == [SHUTDOWN] * CLIENTS
        assert ending.status in statuses
