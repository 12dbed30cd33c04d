"""SockJS by streaming responses: XHR streaming, EventSource, HTML file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
    connected,
    data_of,
    name_of,
    replies,
    request,
)
from tests.server import TIMEOUT, Server

ORIGIN = "http://page.example"


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


@pytest.mark.parametrize(
    ("transport", "prelude"), [(XHR_STREAMING, b"h" * 2048 + b"\n"), (EVENTSOURCE, b"\r\n")]
)
async def test_prelude_makes_browsers_hand_on_what_follows(
    server: Server, transport: Transport, prelude: bytes
) -> None:
    async with Session(server).receive(transport) as receiver:
        assert receiver.prelude == prelude


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


# the callback of HTML file


async def test_callback_may_be_percent_encoded(server: Server) -> None:
    exchange = await open_exchange(
        server, "GET", f"{PREFIX}{Session(server).path('htmlfile')}?x=1&c=%63allback&t=2"
    )
    await exchange.begin()
    assert b"parent.callback;" in await exchange.read_until(b"\r\n\r\n")
    await exchange.close()


async def test_htmlfile_without_a_callback_is_refused(server: Server) -> None:
    answer = await request(server, "GET", Session(server).path("htmlfile"))
    assert answer.status == 400
    assert b'"callback" parameter required' in answer.body


async def test_htmlfile_with_a_callback_that_is_no_name_is_refused(server: Server) -> None:
    session = Session(server)
    answer = await request(server, "GET", session.path("htmlfile") + "?c=a%0Ab")
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
