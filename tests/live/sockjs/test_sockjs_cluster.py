"""SockJS sessions behind a load balancer without sticky sessions: any server takes any request.

docs/protocol.md, 8; what a session is does not depend on where its requests come.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.live.clusters import TWO_NODES, Cluster
from tests.live.sockjs.client import (
    RECEIVING,
    STREAMING,
    Transport,
    name_of,
)
from tests.live.sockjs.nodes import (
    ONE_SERVICE,
    Wanderer,
    four_servers,
    publications,
    publish_all,
)
from tests.server import Server


@pytest.fixture
def servers(shared_cluster: Cluster) -> list[Server]:
    """Two daphnes and two uvicorns of one service."""
    return four_servers(shared_cluster)


@pytest.fixture
def pair(shared_cluster: Cluster, kinds: tuple[str, str]) -> tuple[Server, Server]:
    """Two servers of these kinds."""
    one = shared_cluster(server=kinds[0], **ONE_SERVICE)[0]
    return one, shared_cluster(server=kinds[1], **ONE_SERVICE)[1]


@TWO_NODES
@pytest.mark.parametrize("transport", RECEIVING, ids=name_of)
async def test_session_of_one_server_is_received_from_at_another_one(
    pair: tuple[Server, Server], unique: str, transport: Transport
) -> None:
    one, other = pair
    session = Wanderer([one])
    await session.subscribe(unique)
    session.move([other])

    await publish_all(one, unique, [1])
    async with session.receive(transport) as receiver:
        assert publications(await receiver.frame()) == [1]
        if transport in STREAMING:
            await publish_all(other, unique, [2])
            assert publications(await receiver.frame()) == [2]
            number = await session.command("ping")
            assert [reply["id"] for reply in await receiver.replies()] == [number]


async def test_polls_at_random_servers_receive_thousands_of_publications_in_order(
    servers: list[Server], unique: str
) -> None:
    chance = random.Random(unique)
    session = Wanderer(chance.choices(servers, k=101), chance.choices(servers, k=97))
    await session.subscribe(f"long:{unique}")

    async def publish() -> None:
        for start in range(0, 3000, 50):
            values = range(start, start + 50)
            await publish_all(servers[start // 50 % 4], f"long:{unique}", values)

    await asyncio.gather(publish(), session.poll_publications(3000))

    assert session.received == [*range(3000)]
