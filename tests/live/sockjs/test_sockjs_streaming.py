"""SockJS by streaming responses: XHR streaming, EventSource, HTML file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.raw_http import open_exchange
from tests.live.sockjs.client import (
    BAD_REQUEST,
    EVENTSOURCE,
    HTMLFILE,
    OPEN,
    OPTIONS,
    PREFIX,
    SERVERS,
    STREAMING,
    XHR_STREAMING,
    Receiver,
    Session,
    Transport,
    assert_not_cached,
    assert_readable,
    command,
    connected,
    data_of,
    name_of,
    replies,
    request,
)
from tests.server import TIMEOUT, Server

ORIGIN = "http://page.example"
LIMIT = 128 * 1024
"""Bytes of frames after which a response ends (docs/protocol.md, 8)."""
SLACK = 1024
"""Bytes of a response that may or may not count: what stands around its frames."""


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=STREAMING, ids=name_of)
def transport(request: pytest.FixtureRequest) -> Transport:
    found: Transport = request.param
    return found


# the response


async def test_response_begins_with_the_prelude_and_an_open_frame(
    server: Server, transport: Transport
) -> None:
    session = Session(server)
    async with session.receive(transport, Origin=ORIGIN) as receiver:
        headers = receiver.exchange.headers

        assert await receiver.frame() == OPEN
        assert headers["content-type"] == transport.content_type
        assert "content-length" not in headers
        assert_not_cached(headers)
        assert_readable(headers, ORIGIN)


async def test_prelude_of_xhr_streaming_is_2048_times_h(server: Server) -> None:
    async with Session(server).receive(XHR_STREAMING) as receiver:
        assert receiver.prelude == b"h" * 2048 + b"\n"


async def test_prelude_of_eventsource_is_an_empty_line(server: Server) -> None:
    async with Session(server).receive(EVENTSOURCE) as receiver:
        assert receiver.prelude == b"\r\n"


async def test_prelude_of_htmlfile_is_a_page_of_a_kilobyte_that_calls_its_parent(
    server: Server,
) -> None:
    async with Session(server).receive(HTMLFILE) as receiver:
        page = receiver.prelude.decode()

    # browsers run no scripts of a page that is shorter
    assert len(page) >= 1024
    assert page.startswith("<!doctype html>")
    assert "parent.callback" in page
    for called in ("start()", "stop()", "message("):
        assert called in page


async def test_frames_stand_in_the_response_as_the_transport_wants_them(
    server: Server, transport: Transport
) -> None:
    session = Session(server)
    async with session.receive(transport) as receiver:
        for frame in (OPEN, r'a["{\"id\":1,\"error\":{\"code\":104,'):
            begin = transport.wrap(frame).removesuffix(transport.end).rstrip('"').encode()
            assert (await receiver.exchange.read_until(begin)).endswith(begin)
            if frame == OPEN:
                await receiver.exchange.read_until(transport.end.encode())
                await session.send(command(7, "connect"))
                assert (await receiver.replies())[0]["id"] == 7
                await session.send('{"id":1,"method":77}')


async def test_frames_come_one_by_one_as_they_are_made(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await connected(server, unique)
    async with session.receive(transport) as receiver:
        for number in range(20):
            await asyncio.to_thread(server.publish, unique, number)
            assert data_of(await receiver.replies()) == [number]


async def test_client_of_http_1_0_gets_a_response_without_chunks(
    serve: Callable[..., Server], transport: Transport, unique: str
) -> None:
    """From daphne; uvicorn sends chunks to every client."""
    server = serve(server="daphne", **OPTIONS)
    session = await connected(server, unique)
    exchange = await open_exchange(
        server,
        transport.method,
        PREFIX + session.path(transport.name) + transport.query,
        b"" if transport.method == "POST" else None,
        version="1.0",
    )
    receiver = Receiver(exchange, transport)
    await receiver.begin()

    await asyncio.to_thread(server.publish, unique, 1)

    assert "transfer-encoding" not in exchange.headers
    assert data_of(await receiver.replies()) == [1]
    await exchange.close()


# the limit


async def test_response_ends_at_the_limit_and_nothing_is_lost(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await connected(server, unique)
    count, text = 100, "x" * 8000

    def publish() -> None:
        for number in range(count):
            server.publish(unique, [number, text])

    publishing = asyncio.create_task(asyncio.to_thread(publish))
    received: list[Any] = []
    ended = 0
    while len(received) < count:
        async with session.receive(transport) as receiver:
            size = 0
            while len(received) < count and (frame := await receiver.frame_or_end()) is not None:
                assert size < LIMIT + SLACK, "it goes on above the limit"
                size += len(frame)
                received += data_of(replies(frame))
            if len(received) < count:
                assert size >= LIMIT - 2 * SLACK, "it ends below the limit"
                ended += 1
    await publishing

    assert received == [[number, text] for number in range(count)]
    assert ended >= 2


async def test_message_larger_than_the_limit_comes_whole(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await connected(server, unique)
    text = "é" * LIMIT

    async with session.receive(transport) as receiver:
        await asyncio.to_thread(server.publish, unique, text)
        assert data_of(await receiver.replies()) == [text]
        await receiver.end()

    await asyncio.to_thread(server.publish, unique, "next")
    async with session.receive(transport) as receiver:
        assert data_of(await receiver.replies()) == ["next"]


async def test_response_below_the_limit_goes_on(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await connected(server, unique)
    async with session.receive(transport) as receiver:
        for text in ("x" * (LIMIT - 4096), "y"):
            await asyncio.to_thread(server.publish, unique, text)
            assert data_of(await receiver.replies()) == [text]


# what the transport must not be confused by

WORDS = ["  ", "\r\n\r\n", "\x00", "data: o", "</script>", "<!--", "\u2028\u2029", '");\n', "\\"]


async def test_no_text_looks_like_the_end_of_a_frame(
    server: Server, transport: Transport, unique: str
) -> None:
    session = await connected(server, unique)
    async with session.receive(transport) as receiver:
        for text in WORDS:
            await asyncio.to_thread(server.publish, unique, text)
            frame = await receiver.frame()
            assert data_of(replies(frame)) == [text]
            assert not set(frame) & set("<>&\u2028\u2029\r\n\x00")


async def test_script_of_htmlfile_holds_nothing_that_ends_it(server: Server, unique: str) -> None:
    session = await connected(server, unique)
    async with session.receive(HTMLFILE) as receiver:
        await asyncio.to_thread(server.publish, unique, "</script><script>alert(1)//<!--&")
        script = await receiver.exchange.read_until(b");\n</script>\r\n")

    inside = script.removeprefix(b"<script>\np(").removesuffix(b");\n</script>\r\n")
    assert not re.search(rb"[<>&]", inside)
    json.loads(inside)


# the callback of HTML file


@pytest.mark.parametrize("name", ["a", "_jp.abc123", "a-b_c.d", "A" * 100])
async def test_callback_is_named_in_the_page(server: Server, name: str) -> None:
    exchange = await open_exchange(
        server, "GET", f"{PREFIX}{Session(server).path('htmlfile')}?c={name}"
    )
    await exchange.begin()

    assert f"parent.{name};".encode() in await exchange.read_until(b"\r\n\r\n")
    await exchange.close()


async def test_callback_may_be_percent_encoded(server: Server) -> None:
    exchange = await open_exchange(
        server, "GET", f"{PREFIX}{Session(server).path('htmlfile')}?x=1&c=%63allback&t=2"
    )
    await exchange.begin()

    assert b"parent.callback;" in await exchange.read_until(b"\r\n\r\n")
    await exchange.close()


@pytest.mark.parametrize("query", ["", "?", "?c=", "?d=callback"])
async def test_htmlfile_without_a_callback_is_refused(server: Server, query: str) -> None:
    answer = await request(server, "GET", Session(server).path("htmlfile") + query)

    assert answer.status == 400
    assert b'"callback" parameter required' in answer.body


BAD_CALLBACKS = (
    "%20",
    "*",
    "abc(",
    "abc%28",
    "a%0Ab",
    "a%00",
    "%C3%A9",
    "a;b",
    "a%3Cb",
    "%FF",
    "a+b",
)


@pytest.mark.parametrize("name", BAD_CALLBACKS)
async def test_htmlfile_with_a_callback_that_is_no_name_is_refused(
    server: Server, name: str
) -> None:
    session = Session(server)

    answer = await request(server, "GET", session.path("htmlfile") + f"?c={name}")

    assert answer.status == 400
    assert b'invalid "callback" parameter' in answer.body
    answer = await session.post(b"[]")
    assert answer.status == 404, "no session has begun"


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
