"""SockJS sessions behind a load balancer without sticky sessions: any server takes any request.

docs/protocol.md, 8; what a session is does not depend on where its requests come.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.clusters import TWO_NODES, Cluster, presence
from tests.live.sockjs.client import (
    BUSY,
    EVENTSOURCE,
    FORCED,
    HTMLFILE,
    INTERRUPTED,
    JSONP,
    OPEN,
    RECEIVING,
    STREAMING,
    XHR,
    XHR_STREAMING,
    Transport,
    name_of,
)
from tests.live.sockjs.nodes import (
    ONE_SERVICE,
    Wanderer,
    eventually,
    four_servers,
    publications,
    publish_all,
)
from tests.server import Server

STREAMING_BYTES = 128 * 1024
"""After which a streaming response ends."""


@pytest.fixture
def servers(shared_cluster: Cluster) -> list[Server]:
    """Two daphnes and two uvicorns of one service."""
    return four_servers(shared_cluster)


@pytest.fixture
def pair(shared_cluster: Cluster, kinds: tuple[str, str]) -> tuple[Server, Server]:
    """Two servers of these kinds."""
    one = shared_cluster(server=kinds[0], **ONE_SERVICE)[0]
    return one, shared_cluster(server=kinds[1], **ONE_SERVICE)[1]


# each transport


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


# order and completeness


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


@pytest.mark.parametrize("transport", [XHR_STREAMING, EVENTSOURCE, HTMLFILE], ids=name_of)
async def test_streams_at_changing_servers_receive_everything_over_the_limit_of_each(
    servers: list[Server], unique: str, transport: Transport
) -> None:
    channel = f"long:{unique}"
    session = Wanderer(servers)
    await session.subscribe(channel)
    values = [f"{number}:{'<漢>' * 30}" for number in range(2500)]
    received: list[Any] = []
    responses = 0

    async def publish() -> None:
        for start in range(0, len(values), 25):
            await publish_all(servers[start // 25 % 4], channel, values[start : start + 25])

    publishing = asyncio.create_task(publish())
    while len(received) < len(values):
        responses += 1
        async with session.receive(transport) as receiver:
            size = 0
            while size < STREAMING_BYTES and len(received) < len(values):
                frame = await receiver.frame()
                size += len(frame.encode())
                received += publications(frame)
            if size >= STREAMING_BYTES:
                await receiver.end()
    await publishing

    assert received == values
    assert responses > 1


# several receivers


@pytest.mark.parametrize("transport", [XHR, XHR_STREAMING, JSONP], ids=name_of)
async def test_receiver_that_is_aborted_at_another_server_ends_the_session(
    servers: list[Server], unique: str, transport: Transport
) -> None:
    channel = f"present:{unique}"
    session = Wanderer([servers[0]])
    await session.subscribe(channel)
    session.move([servers[1]])
    exchange = await session.ask(transport)
    # it is attached by the time another one is turned away
    while await session.poll() != BUSY:
        pass

    await exchange.abort()

    await eventually(lambda: presence(servers[2], channel) == {}, "the end of the client")
    session.move(servers)
    assert [await session.poll() for _ in servers] == [INTERRUPTED] * 4
    assert (await session.post(b'["{}"]')).status == 404


# the end of sessions


async def test_disconnect_comes_with_its_advice_at_every_server(
    servers: list[Server], unique: str
) -> None:
    """A user of its own, for the server API disconnects users."""
    session = Wanderer([servers[0]])
    assert await session.poll() == OPEN
    await session.command("connect", token=connection_token(unique))
    await session.poll()
    session.move([servers[1]])

    async with session.receive(XHR_STREAMING) as receiver:
        await asyncio.to_thread(servers[2].api, "disconnect", user=unique)
        assert await receiver.frame() == FORCED
        await receiver.end()

    session.move(servers)
    assert [await session.poll() for _ in servers] == [FORCED] * 4
    assert [(await session.post(b'["{}"]')).status for _ in servers] == [404] * 4
