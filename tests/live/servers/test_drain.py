"""A server that ends closes its clients one after another, and at once at a second signal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from realtime.node.drain import CLOSE_AT_ONCE
from tests.conftest import connection_token
from tests.live.configurations import SHUTDOWN, Connect, Serve
from tests.live.raw_http import open_exchange, request
from tests.live.server_ways import WAYS
from tests.live.sockjs import client as sockjs
from tests.live.streaming.client import (
    HTTP_STREAM,
    STREAMS,
    connect_command,
    frame_of,
    streaming,
)
from tests.live.streaming.listeners import Event, address, listening
from tests.live.streaming.receivers import RECEIVERS, UNI_WEBSOCKET, receiving
from tests.server import API_KEY

LEFT = 5
"""Clients that are left when the first ones were closed."""
LONG = 3600
"""Seconds for a drain that a test never sees the end of."""


@pytest.mark.parametrize("way", ["daphne", "uvicorn"])
async def test_clients_that_are_left_are_served_until_a_second_signal(
    own_server: Serve, connect: Connect, unique: str, way: str
) -> None:
    server = own_server(**WAYS[way], **(RECEIVERS | STREAMS), events=True, drain_seconds=LONG)
    channel = f"recover:{unique}"
    first = [await connect(server) for _ in range(CLOSE_AT_ONCE)]
    left = [await connect(server) for _ in range(LEFT)]
    for client in left:
        await client.result("subscribe", {"channel": channel})
    connecting = {"token": connection_token("17"), "subs": {channel: {}}}
    session = await sockjs.Session(server).open()
    await session.result("connect", token=connection_token("17"))
    await session.result("subscribe", channel=channel)
    async with (
        session.receive() as sockjs_client,
        listening(server, address(channel)) as listener,
        streaming(server, HTTP_STREAM, frame_of(connect_command())) as stream,
        receiving(server, UNI_WEBSOCKET, "message", connecting) as receiver,
    ):
        await listener.begun()
        await stream.connected()
        assert await stream.emulate(server, {"id": 2, "subscribe": {"channel": channel}}) == 204
        assert (await stream.message())["id"] == 2
        await receiver.message()

        os.kill(server.pid, signal.SIGTERM)
        told = [await client.closed() for client in first]
        await left[0].result("publish", {"channel": channel, "data": {"still": "here"}})
        received: list[Any] = [(await client.publication())["data"] for client in left]
        received.append(await listener.data())
        received += sockjs.data_of(await sockjs_client.replies())
        received.append((await stream.message())["push"]["pub"]["data"])
        received.append((await receiver.message())["pub"]["data"])

        ending = asyncio.create_task(repeat_signal(server.pid))
        told += [await client.closed() for client in left]
        told += [await stream.ending(), await receiver.ending()]
        assert await sockjs_client.frame() == sockjs.SHUTDOWN
        rest = await listener.rest()
        await asyncio.to_thread(server.wait)
        ending.cancel()

    assert told == [SHUTDOWN] * (CLOSE_AT_ONCE + LEFT) + [(3001, "shutdown")] * 2
    assert received == [{"still": "here"}] * (LEFT + 4)
    assert [event._replace(retry=None) for event in rest] == [Event()]
    assert "Traceback" not in server.log


async def repeat_signal(pid: int) -> None:
    """Send SIGTERM until the process has ended: one that comes at once is none of its own."""
    while True:
        os.kill(pid, signal.SIGTERM)
        await asyncio.sleep(0.2)


async def test_requests_are_answered_during_the_drain_and_end_their_connection(
    own_server: Serve, connect: Connect
) -> None:
    # daphne alone: uvicorn ends connections that wait for a request as soon as it stops
    server = own_server(drain_seconds=LONG)
    first = [await connect(server) for _ in range(CLOSE_AT_ONCE + 1)]
    key = {"Authorization": f"apikey {API_KEY}", "Content-Type": "application/json"}
    paths = ("/api", "/api/info", "/login-state")
    before = {path: await open_exchange(server, "POST", path, b"{}", key) for path in paths}
    for exchange in before.values():
        await exchange.begin()
        await exchange.rest()

    os.kill(server.pid, signal.SIGTERM)
    assert await first[0].closed() == SHUTDOWN
    for path, exchange in before.items():
        after = exchange.next()
        await after.write(request("POST", path, b"{}", key))
        await after.begin()
        await after.rest()

        assert after.status == exchange.status
        assert "connection" not in exchange.headers
        assert after.headers["connection"] == "close"
        assert await after.connection_ends()
        await after.close()
