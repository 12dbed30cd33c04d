"""The head of an HTTP request has to come in time, however many bytes of it come in between."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from daphne.http_protocol import HTTPFactory
from twisted.internet.task import Clock as ReactorClock
from twisted.internet.testing import StringTransport
from twisted.web.http import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from realtime.transports.asgi import Receive, Scope, Send
from realtime.transports.handshake import HEAD_TIMEOUT
from realtime.transports.servers import daphne_channel, uvicorn, uvicorn_connections
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.uvicorn_servers import open_server

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
END = b"\r\n"
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
IDLE = 60
"""Twisted's time-out between requests, seconds."""


# daphne


class TwistedConnection:
    """A connection of daphne's HTTP factory, without an application."""

    def __init__(self) -> None:
        self.reactor = ReactorClock()
        factory = type("Factory", (HTTPFactory,), {"protocol": daphne_channel.make_channel})(None)
        factory.reactor = self.reactor
        self.protocol = factory.buildProtocol(None)
        self.protocol.requestFactory = Answered
        self.transport = StringTransport()
        self.protocol.makeConnection(self.transport)

    def pass_time(self, seconds: float) -> None:
        self.reactor.pump([1] * int(seconds))

    @property
    def is_open(self) -> bool:
        return not self.transport.disconnecting


class Answered(Request):
    """A request that is answered at once."""

    def process(self) -> None:
        self.write(b"answer")
        self.finish()


@pytest.mark.parametrize("first", [True, False], ids=["first request", "later request"])
def test_daphne_s_connection_ends_without_a_whole_head(first: bool) -> None:
    connection = TwistedConnection()
    if not first:
        connection.protocol.dataReceived(HEAD + END)
        assert b"answer" in connection.transport.value()
    for byte in HEAD[: int(HEAD_TIMEOUT) - 1]:
        connection.protocol.dataReceived(bytes([byte]))
        connection.pass_time(1)
    assert connection.is_open

    connection.pass_time(1)

    assert not connection.is_open


def test_daphne_s_own_time_out_holds_between_requests_and_during_bodies() -> None:
    connection = TwistedConnection()
    connection.protocol.dataReceived(HEAD + END)
    connection.pass_time(IDLE - 1)
    connection.protocol.dataReceived(HEAD.replace(b"GET", b"POST") + b"Content-Length: 9\r\n" + END)
    connection.pass_time(IDLE - 1)
    connection.protocol.dataReceived(b"body")
    connection.pass_time(IDLE - 1)
    assert connection.is_open

    connection.pass_time(1)

    assert not connection.is_open


# uvicorn


class Site:
    """An application that answers when a test says so."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.answers.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"answer"})


@pytest.fixture
async def site() -> Site:
    return Site()


@pytest.fixture
async def port(site: Site, clock: Clock) -> AsyncIterator[int]:
    """A socket that uvicorn's connections are accepted on."""
    async with open_server(site, http="h11", timeout_keep_alive=1000) as server:
        yield server.address[1]


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Read what there is; whether the connection is closed after it."""
    await turns(50)
    return reader.at_eof() or reader.exception() is not None


async def send(clock: Clock, writer: asyncio.StreamWriter, data: bytes, seconds: float) -> None:
    """Send bytes, and let so much time pass after them."""
    writer.write(data)
    await turns(20)
    for _ in range(int(seconds)):
        await clock.advance(1)


@pytest.mark.parametrize(
    ("first", "head"),
    [(True, b""), (True, HEAD), (False, HEAD)],
    ids=["no head", "first request", "later request"],
)
async def test_uvicorn_s_connection_ends_without_a_whole_head(
    port: int, clock: Clock, site: Site, first: bool, head: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    site.answers.set()
    if not first:
        await send(clock, writer, HEAD + END, 0)
        assert b"answer" in await reader.readuntil(b"0\r\n\r\n")
    for second in range(int(HEAD_TIMEOUT)):
        assert not await is_closed(reader)
        await send(clock, writer, head[second : second + 1], 1)

    await clock.advance(2)

    await eventually(lambda: reader.at_eof() or reader.exception() is not None)
    writer.close()


async def test_uvicorn_s_connection_stays_during_and_between_requests(
    port: int, clock: Clock, site: Site
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        site.answers.clear()
        await send(clock, writer, HEAD + END, 3 * HEAD_TIMEOUT)
        site.answers.set()
        assert b"answer" in await reader.readuntil(b"0\r\n\r\n")
        await send(clock, writer, b"", 3 * HEAD_TIMEOUT)
        assert not await is_closed(reader)
    writer.close()


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    """Accept a WebSocket, and wait until it is closed."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()


@pytest.mark.parametrize("http", ["h11", "httptools"])
async def test_web_socket_keeps_nothing_of_the_http_connection_that_it_was(http: Any) -> None:
    async with open_server(accept, http=http, ws="websockets-sansio") as server:
        gc.disable()
        try:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(HEAD + UPGRADE + END)
            assert b" 101 " in await reader.readuntil(END + END)

            await eventually(lambda: [protocol() for protocol in server.made] == [None])

            writer.close()
            await eventually(lambda: not server.state.connections)
        finally:
            gc.enable()


def test_servers_know_the_protocol_as_one_of_uvicorn() -> None:
    protocol: Any = uvicorn_connections.timed(H11Protocol)
    assert protocol.__module__.startswith(uvicorn._HTTP_PROTOCOLS)
    assert issubclass(protocol, H11Protocol)
