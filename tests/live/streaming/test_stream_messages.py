"""What goes through a stream, and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from tests.live.clusters import presence_stats
from tests.live.memory_parts import has_open, needs_proc
from tests.live.raw_http import open_exchange
from tests.live.server_ways import WAYS, small_socket
from tests.live.streaming.client import (
    HTTP_STREAM,
    SSE,
    STREAMS,
    connect_command,
    frame_of,
    streaming,
)
from tests.server import Server, wait_until

EVERY_WAY = pytest.mark.parametrize(
    "way", ["daphne", "daphne behind middleware", "uvicorn", "granian"]
)
LARGE = "x" * 100_000
COUNT = 60
"""Publications of LARGE: more than the buffers of sockets."""


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**STREAMS)


def subscribe_command(channel: str) -> dict[str, object]:
    return {"id": 2, "subscribe": {"channel": channel}}


@EVERY_WAY
async def test_publications_come_in_order_and_the_end_is_told(
    own_server: Callable[..., Server], way: str, unique: str
) -> None:
    """By both kinds of streams."""
    server = own_server(**WAYS[way], **STREAMS)
    first = frame_of(connect_command(), subscribe_command(unique))
    async with (
        streaming(server, HTTP_STREAM, first) as stream,
        streaming(server, SSE, first) as events,
    ):
        for each in (stream, events):
            await each.connected()
            assert await each.message() == {"id": 2, "subscribe": {}}
        data = [{"number": number, "text": "a\nb\r\n\u2028c"} for number in range(25)]
        for publication in data:
            await asyncio.to_thread(server.publish, unique, publication)

        published = [[await each.message() for _ in data] for each in (stream, events)]
        stopping = asyncio.create_task(asyncio.to_thread(server.terminate))

        for messages in published:
            assert [message["push"]["pub"]["data"] for message in messages] == data
        for each in (stream, events):
            assert await each.ending() == (3001, "shutdown")
        await stopping


@EVERY_WAY
async def test_peer_that_goes_leaves_its_channels(
    serve: Callable[..., Server], way: str, unique: str
) -> None:
    server = serve(**WAYS[way], **STREAMS)
    channel = f"present:{unique}"
    first = frame_of(connect_command(), subscribe_command(channel))
    async with streaming(server, HTTP_STREAM, first) as stream:
        await stream.connected()
        await stream.message()
        assert presence_stats(server, channel) == (1, 1)

        await stream.exchange.abort()

    await asyncio.to_thread(
        wait_until, lambda: presence_stats(server, channel) == (0, 0), what="the end of presence"
    )


@needs_proc
@pytest.mark.parametrize("way", ["daphne", "uvicorn", "granian"])
def test_client_that_does_not_read_is_slow(
    serve: Callable[..., Server], way: str, unique: str
) -> None:
    server = serve(**WAYS[way], **STREAMS, client_queue_max_size=500_000)
    closes = len(re.findall("slow", server.log))
    body = frame_of(connect_command(), subscribe_command(unique))
    head = f"POST {HTTP_STREAM} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = small_socket(server)
    connection.settimeout(10)
    connection.sendall(head.encode() + body)
    received = b""
    while b'"subscribe":{}' not in received:
        received += connection.recv(4096)

    for _ in range(COUNT):
        server.publish(unique, LARGE)

    wait_until(
        lambda: len(re.findall("slow", server.log)) == closes + 1, what="the end of a slow client"
    )
    if way != "granian":  # which has no way to drop a connection
        wait_until(lambda: not has_open(server, connection), what="the end of its connection")
    connection.close()


async def test_stream_goes_on_while_it_is_quiet_and_the_peer_has_sent_all(
    server: Server, unique: str
) -> None:
    """A body in two parts, and then nothing."""
    body = frame_of(connect_command(), subscribe_command(unique))
    length = {"Content-Length": str(len(body))}
    exchange = await open_exchange(server, "POST", HTTP_STREAM, headers=length)
    await exchange.write(body[:10])
    await exchange.write(body[10:])
    await exchange.begin()
    await exchange.read_until(b'"subscribe":{}}\n')

    server.publish(unique, 1)

    assert b'"data":1' in await exchange.read_until(b"\n")
    await exchange.close()


@pytest.mark.parametrize("path", [HTTP_STREAM, SSE])
async def test_pings_come_and_pongs_go_beside_the_stream(
    serve: Callable[..., Server], path: str
) -> None:
    server = serve(**STREAMS, ping_interval=1, pong_timeout=0.9)
    async with streaming(server, path, frame_of(connect_command())) as stream:
        result = await stream.connected()
        assert (result["ping"], result["pong"]) == (1, True)
        for _ in range(2):
            assert await stream.message() == {}
            assert await stream.emulate_frame(server, "{}") == 204
        assert await stream.message() == {}

        assert await stream.ending() == (3012, "no pong")
