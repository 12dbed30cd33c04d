"""Every way frames leave: each server, wrapped `send`, TLS, slow readers, closing handshakes.

What leaves is the same everywhere: every publication once, in order, whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import websockets
from websockets.exceptions import ConnectionClosedError

from tests.live.server_ways import WAYS, small_socket
from tests.protocol_client import ProtocolClient
from tests.server import Server, wait_until

LARGE = random.Random(1).randbytes(15_000).hex()  # some servers compress
COUNT = 200


@pytest.fixture(params=WAYS.values(), ids=list(WAYS))
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(**request.param, client_insecure=True)


@pytest.fixture
def join(connect: Callable[..., Any], server: Server) -> Callable[..., Any]:
    """Connect a client to the server, without a token."""

    async def join(**options: Any) -> ProtocolClient:
        if server.socket.startswith("wss"):
            options["ssl"] = ssl._create_unverified_context()
        client: ProtocolClient = await connect(server, user=None, **options)
        return client

    return join


def numbers(pushes: list[dict[str, Any]]) -> list[int]:
    return [push["data"]["data"]["n"] for push in pushes]


@pytest.mark.parametrize("way", ["daphne", "uvicorn"])
async def test_message_above_the_limit_is_refused_by_its_announced_length(
    serve: Callable[..., Server], connect: Callable[..., Any], way: str
) -> None:
    client = await connect(serve(**WAYS[way], client_insecure=True), user=None)
    client.socket.transport.write(b"\x82\xff" + (100_000).to_bytes(8, "big") + bytes(4))
    with pytest.raises(ConnectionClosedError) as closed:
        await client.socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("path", ["/connection/websocket", "/connection/sockjs/0/s/websocket"])
async def test_compression_is_refused(serve: Callable[..., Server], path: str) -> None:
    """uvicorn would compress by default; the other servers do not offer it."""
    server = serve(**WAYS["uvicorn"], client_insecure=True)
    async with websockets.connect(
        f"ws://127.0.0.1:{server.port}{path}", compression="deflate"
    ) as socket:
        assert socket.protocol.extensions == []


async def publish_many(server: Server, channel: str, data: list[Any]) -> None:
    for value in data:
        await asyncio.to_thread(server.publish, channel, value)


async def test_small_and_large_publications_arrive_whole_and_in_order(
    server: Server, join: Callable[..., Any], unique: str, format_name: str
) -> None:
    client = await join(format_name=format_name)
    await client.result("subscribe", {"channel": unique})
    # around the lengths at which a frame's header and a varint grow
    sizes = [0, 1, 60, 100, 125, 126, 127, 128, 200, 16_000, 65_400, 65_536, 70_000, 200_000]
    await publish_many(server, unique, ["é" * (size // 2) for size in sizes])
    received = [await client.publication() for _ in sizes]
    assert [publication["data"] for publication in received] == ["é" * (s // 2) for s in sizes]


async def test_many_publications_at_once_reach_every_client_in_order(
    server: Server, join: Callable[..., Any], unique: str
) -> None:
    clients = [await join(format_name=name) for name in ("json", "protobuf", "json")]
    for client in clients:
        await client.result("subscribe", {"channel": unique})
    publisher = await join()

    commands = [
        publisher.encode(i, "publish", {"channel": unique, "data": {"n": i}})
        for i in range(1, COUNT + 1)
    ]
    await publisher.send_raw("\n".join(commands))

    for client in clients:
        assert numbers([await client.push() for _ in range(COUNT)]) == list(range(1, COUNT + 1))


async def test_client_that_reads_late_loses_nothing(
    server: Server, join: Callable[..., Any], unique: str
) -> None:
    # the library stops reading when its queue is full, so the server's buffers fill
    late = await join(max_queue=1)
    await late.result("subscribe", {"channel": unique})
    canary = await join()
    await canary.result("subscribe", {"channel": unique})
    for number in range(50):
        await asyncio.to_thread(server.publish, unique, {"n": number, "text": 4 * LARGE})
        assert (await canary.publication())["data"]["n"] == number
    assert numbers([await late.push() for _ in range(50)]) == list(range(50))


async def test_control_frames_between_publications_are_answered(
    server: Server, join: Callable[..., Any], unique: str
) -> None:
    client = await join()
    await client.result("subscribe", {"channel": unique})

    pongs = []
    for number in range(50):
        pongs.append(await client.socket.ping(str(number)))
        await asyncio.to_thread(server.publish, unique, {"n": number, "text": LARGE})

    assert numbers([await client.push() for _ in range(50)]) == list(range(50))
    async with asyncio.timeout(60):
        await asyncio.gather(*pongs)


async def test_nothing_follows_a_close_frame(
    server: Server, join: Callable[..., Any], unique: str
) -> None:
    publisher = await join()
    # granian sometimes drops the connection where it should answer the close frame
    answers = (1000, 1006) if "granian" in server.log else (1000,)

    for _ in range(20):
        client = await join()
        await client.result("subscribe", {"channel": unique})
        closing = asyncio.create_task(client.socket.close())
        for number in range(5):
            await publisher.result("publish", {"channel": unique, "data": {"n": number}})
        await closing
        # the library would have closed with 1002 if frames had come after the close frame
        with contextlib.suppress(ConnectionClosedError):
            async for _ in client.socket:
                pass  # publications from before the close frame
        assert client.socket.close_code in answers

    await publisher.quiet()
    assert "Traceback" not in server.log


async def test_client_that_never_reads_is_closed_as_slow_and_disturbs_no_other(
    own_server: Callable[..., Server], connect: Callable[..., Any], unique: str, way: str
) -> None:
    server = own_server(**WAYS[way], client_insecure=True, client_queue_max_size=500_000)
    tls = {"ssl": ssl._create_unverified_context()} if server.socket.startswith("wss") else {}
    slow = await connect(server, user=None, max_queue=1, sock=small_socket(server), **tls)
    await slow.result("subscribe", {"channel": unique})
    canary = await connect(server, user=None, **tls)
    await canary.result("subscribe", {"channel": unique})

    for number in range(200):
        await asyncio.to_thread(server.publish, unique, {"n": number, "text": 4 * LARGE})
        assert (await canary.publication())["data"]["n"] == number
        if "3008: slow" in server.log:  # the number alone may be in a port
            break

    wait_until(lambda: "3008: slow" in server.log, what="the slow client's disconnect")
    wait_until(
        lambda: server.api("info")["result"]["nodes"][0]["num_clients"] == 1,
        what="one client, the canary, being left",
    )
    slow.socket.transport.abort()  # it would wait for an answer to its close frame


@pytest.fixture(
    params=["daphne", "daphne with TLS", "uvicorn", "uvicorn behind middleware", "granian"]
)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name
