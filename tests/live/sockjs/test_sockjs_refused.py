"""SockJS and bad requests: they are refused, and no other client notices."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import unquote

import pytest

from tests.live.raw_http import Answer, Exchange, open_exchange
from tests.live.sockjs.client import (
    BAD_REQUEST,
    OPEN,
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
FRAME_LIMIT = 65_536
"""`websocket_message_size_limit`, bytes."""
HEADERS_LIMIT = 32 * 1024
"""Bytes of all headers that are kept for hooks (transports/handshake.py)."""


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


async def all_is_well(server: Server) -> None:
    """Another client is served, and no request has made the server fail."""
    assert await (await Session(server).open()).result("connect") != {}
    assert "Traceback" not in server.log


# size


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


async def test_frame_above_the_limit_is_refused_and_the_session_goes_on(server: Server) -> None:
    session = await Session(server).open()
    large = command(1, "connect").ljust(FRAME_LIMIT + 1)
    assert (await session.post(json.dumps([large]).encode())).status == 413
    assert (await session.post(json.dumps([large[:-1]]).encode())).status == 204
    assert replies(await session.poll())[0]["id"] == 1


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
    headers = {f"X-Header-{number}": "x" * 1000 for number in range(40)}
    assert sum(map(len, headers.values())) > HEADERS_LIMIT

    session = Session(server)
    exchange = await session.ask(transport, **headers)
    # daphne takes half of it, and says so itself
    await exchange.begin()
    assert 400 <= exchange.status < 500
    await exchange.close()

    assert (await session.post(b"[]")).status == 404, "no session has begun"
    await all_is_well(server)


async def test_headers_within_the_servers_limit_but_not_ours_are_too_large(
    serve: Callable[..., Server],
) -> None:
    server = serve(server="uvicorn-long-heads", **OPTIONS)
    headers = {f"X-Header-{number}": "x" * 1000 for number in range(33)}
    answer = await request(server, "POST", Session(server).path("xhr"), b"", headers)
    assert answer.status == 431


# names


async def test_name_of_a_session_may_have_128_characters_and_no_more(
    server: Server, unique: str
) -> None:
    fits, too_long = unique.ljust(128, "x"), unique.ljust(129, "y")
    assert await Session(server, fits).poll() == OPEN
    for method, what in (("POST", "xhr"), ("POST", "xhr_send"), ("GET", "eventsource")):
        answer = await request(server, method, Session(server, too_long).path(what), b"[]")
        assert answer.status == 404


ODD = ("%zz", "%00", "%FF%FE", "%0D%0ASet-Cookie:%20a=b", "..%2f..%2fetc", "{}[]|^`")


@pytest.mark.parametrize("name", ODD)
async def test_odd_name_is_a_name_or_not_found(server: Server, unique: str, name: str) -> None:
    session = Session(server, unique + name)
    answer = await request(server, "POST", session.path("xhr"), b"")
    # it is decoded once
    assert answer.status == (404 if set(unquote(name)) & {"/", "."} else 200)
    await all_is_well(server)


# verbs and heads


async def test_unknown_verb_is_refused(server: Server) -> None:
    for method in ("BREW", "get", "TRACE", "CONNECT", "PROPFIND"):
        answer = await request(server, method, Session(server).path("xhr"))
        # a server may refuse what is no verb of HTTP before we see it
        assert 400 <= answer.status < 500
    await all_is_well(server)


@pytest.mark.parametrize(
    "query",
    ["?c=" + "a" * 5000, "?c=a&" * 500, "?%FF=%FF", "?" + "&" * 3000],
    ids=lambda query: query[:10],
)
async def test_odd_queries_are_answered(server: Server, query: str) -> None:
    answer = await request(server, "GET", Session(server).path("jsonp") + query)
    assert answer.status in (200, 400, 500)
    assert answer.body in (
        b'a("o");\r\n',
        b'invalid "callback" parameter\n',
        b'"callback" parameter required\n',
    )
    await all_is_well(server)


# contents


async def test_deeply_nested_command_is_a_bad_request(server: Server) -> None:
    session = await Session(server).open()
    await session.send('{"id":1,"params":' + "[" * 50_000)
    assert await session.poll() == BAD_REQUEST
    await all_is_well(server)


async def test_requests_that_begin_a_session_at_once_begin_one(server: Server) -> None:
    session = Session(server)

    exchanges = [await session.ask() for _ in range(10)]

    async def read(exchange: Exchange) -> bytes:
        await exchange.begin()
        return await exchange.rest()

    # one gets the open frame, one waits for the next, all others are sent away
    reading = asyncio.as_completed([read(exchange) for exchange in exchanges])
    bodies = [await next(reading) for _ in range(9)]
    await session.command("connect")
    last = await next(reading)
    for exchange in exchanges:
        await exchange.close()

    assert sorted(bodies) == [b'c[2010,"Another connection still open"]\n'] * 8 + [b"o\n"]
    assert b"client" in last


# slow commands


# other transports
