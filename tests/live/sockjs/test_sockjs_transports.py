"""SockJS by every transport and server: how a session begins, what it carries, how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.conftest import connection_token
from tests.live.raw_http import open_exchange
from tests.live.sockjs.client import (
    BAD_REQUEST,
    BUSY,
    FORCED,
    HTMLFILE,
    INTERRUPTED,
    OPEN,
    OPTIONS,
    PREFIX,
    RECEIVING,
    SERVERS,
    STREAMING,
    XHR,
    XHR_STREAMING,
    Receiver,
    Session,
    Transport,
    connected,
    data_of,
    name_of,
    replies,
)
from tests.server import TIMEOUT, Server

PAGE = "http://page.example"
WORDS = [
    *("  ", "\r\n\r\n", "\x00", "data: o", "</script>", "<!--", "\u2028\u2029", '");\n', "\\"),
    "x<é😀" * 100_000,
]
"""Texts that a transport must not be confused by; the last one fills a streaming response."""
PRELUDES = {"xhr_streaming": b"h" * 2048 + b"\n", "eventsource": b"\r\n"}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=RECEIVING, ids=name_of)
def transport(request: pytest.FixtureRequest) -> Transport:
    found: Transport = request.param
    return found


class Client:
    """A client that receives by any transport."""

    def __init__(self, session: Session, transport: Transport) -> None:
        self.session = session
        self._transport = transport
        self._stack = AsyncExitStack()
        self._receiver: Receiver | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def receiver(self) -> Receiver:
        """The response that goes on, or another one."""
        if self._receiver is None or self._transport not in STREAMING:
            receiving = self.session.receive(self._transport)
            self._receiver = await self._stack.enter_async_context(receiving)
        return self._receiver

    async def frame(self) -> str:
        return await (await self.receiver()).frame()

    async def call(self, method: str, **params: Any) -> None:
        """Send a command, which must succeed; its reply is the next frame."""
        number = await self.session.command(method, **params)
        [reply] = replies(await self.frame())
        assert (reply["id"], "error" in reply) == (number, False), reply


async def test_session_lives_by_each_transport(
    server: Server, transport: Transport, unique: str
) -> None:
    session = Session(server)
    session.headers = {"Origin": PAGE}
    async with Client(session, transport) as client:
        first = await client.receiver()
        assert await first.frame() == OPEN
        await client.call("connect", token=connection_token(unique))
        await client.call("subscribe", channel=unique)
        for text in WORDS:
            await asyncio.to_thread(server.publish, unique, text)
            frame = await client.frame()
            assert data_of(replies(frame)) == [text]
            assert not set(frame) & set("<>&\u2028\u2029\r\n\x00")
        if transport in STREAMING:
            await first.end()

        receiver = Receiver(await session.ask(transport), transport)
        await asyncio.to_thread(server.api, "disconnect", user=unique)
        await receiver.begin()
        assert await receiver.frame() == FORCED
        await receiver.end()
        await receiver.exchange.close()

    assert await one_frame(session, transport) == FORCED
    headers = first.exchange.headers
    assert headers["content-type"] == transport.content_type
    assert "no-store" in headers["cache-control"]
    assert headers["access-control-allow-origin"] == PAGE
    assert ("content-length" in headers) is (transport not in STREAMING)
    assert ("x-accel-buffering" in headers) is (transport in STREAMING)
    if transport is HTMLFILE:  # browsers run no scripts of a page that is shorter
        assert len(first.prelude) >= 1024
        assert first.prelude.startswith(b"<!doctype html>")
        assert all(part in first.prelude for part in (b"parent.callback", b"start()", b"stop()"))
    else:
        assert first.prelude == PRELUDES.get(transport.name, b"")


async def one_frame(session: Session, transport: Transport) -> str:
    """Receive by any transport, which must get one frame and no more."""
    async with session.receive(transport) as receiver:
        frame = await receiver.frame()
        await receiver.end()
        return frame


async def test_aborted_receiver_ends_the_session(server: Server, transport: Transport) -> None:
    """It is not known what the client read, so the client has to recover."""
    session = await connected(server)
    receiver = Receiver(await session.ask(transport), transport)
    if transport in STREAMING:
        await receiver.begin()
    assert await one_frame(session, XHR_STREAMING) == BUSY

    await receiver.exchange.abort()

    while (frame := await one_frame(session, transport)) == BUSY:
        pass
    assert frame == INTERRUPTED
    assert (await session.post(b'["{}"]')).status == 404


async def test_response_that_was_read_to_its_end_ends_no_session(
    server: Server, unique: str
) -> None:
    """Each connection is cut after a polling response: that is no abortion."""
    session = await connected(server, unique)
    for number in range(10):
        server.publish(unique, number)
        receiver = Receiver(await session.ask(), XHR)
        await receiver.begin()
        assert data_of(await receiver.replies()) == [number]
        await receiver.exchange.abort()


# paths and connections


async def test_name_in_a_path_is_decoded_once(server: Server, unique: str) -> None:
    session = Session(server, f"%22%2541{unique}%F0%9F%98%80", "%3Cb%3E")
    assert await session.poll() == OPEN
    await session.post(json.dumps(['{"id":1}']).encode())
    session.name = session.name.replace("%22", '"')
    assert replies(await session.poll())[0]["id"] == 1
    for name in ("..%2f..%2fetc", "a%2E"):
        assert (await Session(server, name).post(b"", what="xhr")).status == 404


async def test_connection_goes_on_after_a_response(server: Server) -> None:
    """HTTP/1.1: a second request on the same connection."""
    exchange = await open_exchange(server, "GET", f"{PREFIX}/")
    await exchange.begin()
    first = await exchange.rest()
    head = f"GET {PREFIX}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    await exchange.write(head.encode())
    second = exchange.next()
    await second.begin()

    assert (second.status, await second.rest()) == (200, first)
    await second.close()


@pytest.mark.parametrize("kind", ["daphne", "granian", "uvicorn", "uvicorn-h11"])
async def test_response_to_a_client_of_http_1_0_ends_with_the_connection(
    serve: Callable[..., Server], kind: str
) -> None:
    server = serve(server=kind, **OPTIONS)
    session = Session(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    path = PREFIX + session.path("xhr_streaming")
    writer.write(f"POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT):
        await reader.readuntil(b"o\n")
        await session.send('{"id":1,"method":99}')
        rest = await reader.read()
    writer.close()

    in_chunks = kind == "uvicorn"  # which is httptools' protocol; see docs/deployment.md
    assert rest.endswith(f"{BAD_REQUEST}\n".encode() + b"\r\n0\r\n\r\n" * in_chunks)


async def test_sockjs_can_be_moved(serve: Callable[..., Server]) -> None:
    server = serve(sockjs_handler_prefix="/moved/sock.js")
    statuses = []
    for path in ("/moved/sock.js/info", "/moved/sock.js", f"{PREFIX}/info", "/moved/sockxjs/info"):
        exchange = await open_exchange(server, "GET", path)
        await exchange.begin()
        statuses.append(exchange.status)
        await exchange.close()
    assert statuses == [200, 301, 404, 404]
