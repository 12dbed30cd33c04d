"""SockJS and bad requests: they are refused, and no other client notices."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.live.raw_http import Answer, open_exchange
from tests.live.sockjs.client import (
    OPTIONS,
    PREFIX,
    RECEIVING,
    SERVERS,
    Session,
    Transport,
    command,
    name_of,
    replies,
    request,
)
from tests.server import Server

BODY_LIMIT = 2_621_440
"""Django's DATA_UPLOAD_MAX_MEMORY_SIZE, bytes."""
HEADERS_LIMIT = 32 * 1024
"""Bytes of all headers that are kept for hooks (transports/handshake.py)."""


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


async def all_is_well(server: Server) -> None:
    """Another client is served, and no request has made the server fail."""
    assert await (await Session(server).open()).result("connect") != {}
    assert "Traceback" not in server.log


@pytest.mark.parametrize("what", ["xhr_send", "jsonp_send"])
@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 4 * BODY_LIMIT])
async def test_body_that_is_too_large_is_refused_and_the_session_goes_on(
    server: Server, what: str, size: int
) -> None:
    session = await Session(server).open()
    answer = await session.post(b'["' + b"x" * (size - 4) + b'"]', None, what)
    assert answer.status == 413
    assert await session.result("connect") != {}
    await all_is_well(server)


async def test_body_in_chunks_is_taken_and_limited_too(server: Server) -> None:
    session = await Session(server).open()
    good = [b'["{\\"id\\":', b"1}", b'"]']
    large = [b"[", *[b" " * 262_144] * 11, b"]"]
    answers = [await post_chunks(session, chunks) for chunks in (large, good)]
    assert [answer.status for answer in answers] == [413, 204]
    assert replies(await session.poll())[0]["id"] == 1


async def post_chunks(session: Session, chunks: list[bytes]) -> Answer:
    """Send a body whose length is not said before."""
    path = PREFIX + session.path("xhr_send")
    headers = {"Transfer-Encoding": "chunked"}
    exchange = await open_exchange(session.server, "POST", path, None, headers)
    for chunk in chunks:
        await exchange.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
    await exchange.write(b"0\r\n\r\n")
    await exchange.begin()
    answer = Answer(exchange.status, exchange.headers, await exchange.rest())
    await exchange.close()
    return answer


async def test_slow_body_delays_no_other_request_and_may_never_come(server: Server) -> None:
    session = await Session(server).open()
    body = json.dumps([command(7, "connect")]).encode()
    path = PREFIX + session.path("xhr_send")
    headers = {"Content-Length": str(len(body))}
    slow = await open_exchange(server, "POST", path, None, headers)
    broken_off = await open_exchange(server, "POST", path, None, headers)
    for each in (slow, broken_off):
        await each.write(body[:10])

    await all_is_well(server)
    await broken_off.abort()
    await slow.write(body[10:])

    await slow.begin()
    assert slow.status == 204
    await slow.close()
    assert [reply["id"] for reply in replies(await session.poll())] == [7]
    await all_is_well(server)


@pytest.mark.parametrize("name", ["daphne", "uvicorn-long-heads"])
@pytest.mark.parametrize("transport", RECEIVING, ids=name_of)
async def test_flood_of_headers_is_refused(
    serve: Callable[..., Server], transport: Transport, name: str
) -> None:
    server = serve(server=name, **OPTIONS)
    headers = {f"X-Header-{number}": "x" * 1000 for number in range(33)}
    assert sum(map(len, headers.values())) > HEADERS_LIMIT
    session = Session(server)
    exchange = await session.ask(transport, **headers)
    await exchange.begin()
    # daphne takes half of it, and says so itself
    assert exchange.status == (431 if name == "uvicorn-long-heads" else 400)
    await exchange.close()
    assert (await session.post(b"[]")).status == 404, "no session has begun"


async def test_unknown_verb_is_refused(server: Server) -> None:
    for method in ("BREW", "get", "TRACE", "CONNECT", "PROPFIND"):
        answer = await request(server, method, Session(server).path("xhr"))
        # a server may refuse what is no verb of HTTP before we see it
        assert 400 <= answer.status < 500
    await all_is_well(server)
