"""SockJS sessions behind a load balancer without sticky sessions: any server takes any request.

docs/protocol.md, 8; what a session is does not depend on where its requests come.
"""

from __future__ import annotations

import asyncio
import json
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
    command,
    name_of,
    replies,
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


@TWO_NODES
async def test_session_is_polled_at_one_server_and_sent_to_at_another_one(
    pair: tuple[Server, Server], unique: str
) -> None:
    one, other = pair
    session = Wanderer([one], [other])

    await session.subscribe(unique)
    await publish_all(other, unique, [1, 2, 3])
    await session.poll_publications(3)

    assert session.received == [1, 2, 3]


async def test_jsonp_session_is_sent_to_by_forms_at_another_server(
    servers: list[Server], unique: str
) -> None:
    session = Wanderer(servers)
    assert await session.poll(JSONP) == OPEN

    body = json.dumps([command(1, "connect"), command(2, "subscribe", channel=unique)]).encode()
    answer = await session.post(body, what="jsonp_send")
    assert (answer.status, answer.body) == (200, b"ok")
    answered = {reply["id"] for reply in replies(await session.poll(JSONP))}
    while answered < {1, 2}:
        answered |= {reply["id"] for reply in replies(await session.poll(JSONP))}
    await publish_all(servers[0], unique, ["x"])

    assert publications(await session.poll(JSONP)) == ["x"]


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


async def test_large_frames_travel_both_ways_between_servers(
    servers: list[Server], unique: str
) -> None:
    one, other = servers[:2]
    channel = f"long:{unique}"
    session = Wanderer([one])
    await session.subscribe(channel)
    session.move([other])
    texts = ["x" * 50_000 + str(number) for number in range(20)]

    await session.send(
        *(command(10 + n, "publish", channel=channel, data=text) for n, text in enumerate(texts))
    )
    await session.poll_publications(len(texts))

    assert session.received == texts


ODD = [
    "",
    "ä漢🎉",
    "\u2028\u2029\ufeff\uffff\u200d",
    "\x00\x1f\x7f\x85",
    "\"'\\</script>",
    "\ud7ff\ue000",
]


async def test_odd_text_travels_both_ways_between_servers(
    servers: list[Server], unique: str
) -> None:
    channel = f"long:{unique}"
    session = Wanderer([servers[0]])
    await session.subscribe(channel)
    session.move(servers[1:])

    for number, text in enumerate(ODD):
        sent = json.dumps(
            {"id": 10 + number, "method": 3, "params": {"channel": channel, "data": text}},
            ensure_ascii=False,
        )
        answer = await session.post(json.dumps([sent], ensure_ascii=False).encode())
        assert answer.status == 204, answer
        await session.poll_publications(number + 1)

    assert session.received == ODD


async def test_sends_at_once_at_all_servers_are_all_taken(
    servers: list[Server], unique: str
) -> None:
    session = Wanderer([servers[0]], servers)
    await session.subscribe(unique)
    pings = range(100, 120)

    async with session.receive(XHR_STREAMING) as receiver:
        await asyncio.gather(*(session.send(command(number, "ping")) for number in pings))
        answered: list[int] = []
        while len(answered) < len(pings):
            answered += [reply["id"] for reply in await receiver.replies()]

    assert sorted(answered) == [*pings]


# several receivers


@pytest.mark.parametrize(
    ("first", "second"),
    [(0, 1), (1, 0), (1, 1), (1, 2)],
    ids=["here, there", "there, here", "both there", "there, elsewhere"],
)
async def test_second_receiver_is_refused_at_every_server(
    servers: list[Server], unique: str, first: int, second: int
) -> None:
    session = Wanderer([servers[0]])
    await session.subscribe(unique)
    session.move([servers[first]])

    async with session.receive(XHR_STREAMING) as receiver:
        session.move([servers[second]])
        assert await session.poll() == BUSY
        await publish_all(servers[second], unique, [1])
        assert publications(await receiver.frame()) == [1]


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


async def test_send_to_an_unknown_session_is_refused_at_every_server(servers: list[Server]) -> None:
    session = Wanderer(servers)

    assert [(await session.post(b'["{}"]')).status for _ in servers] == [404] * 4
