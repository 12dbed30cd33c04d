"""SockJS by polling: names of sessions, frames, what clients send, characters that get lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.live.sockjs.client import (
    OPEN,
    OPTIONS,
    SCRIPT,
    SERVERS,
    TEXT,
    XHR,
    Session,
    assert_not_cached,
    assert_readable,
    command,
    connected,
    data_of,
    replies,
    request,
)
from tests.server import Server

ORIGIN = "http://page.example"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


# names of sessions


@pytest.mark.parametrize(
    ("srv", "name"),
    [
        ("a", "a{}"),
        ("_", "_{}"),
        ("1", "{}"),
        ("abcdefgh_i-j%20", "abcdefg_i-j%20{}"),
        ("%3Cb%3E", "%22%27%5C{}"),
        ("%C3%A9", "%F0%9F%98%80{}"),
        ("000", "%00%0A{}"),
        ("000", "{};a=1"),
        ("0" * 1000, "{}"),
    ],
)
async def test_session_may_be_called_anything(
    server: Server, unique: str, srv: str, name: str
) -> None:
    session = Session(server, name.format(unique), srv)
    assert await session.poll() == OPEN
    assert await session.result("connect") != {}


@pytest.mark.parametrize("part", ["//", "/a./a", "/a/a.", "/./.", "/", "///", "/a/a/a", "/a/%2E"])
async def test_name_with_dots_or_no_name_is_not_found(server: Server, part: str) -> None:
    for method in ("GET", "POST"):
        assert (await request(server, method, f"{part}/xhr")).status == 404


@pytest.mark.parametrize("what", ["xhr/", "xhr_send/", "xhr_stream", "XHR", "", "websocket/"])
async def test_path_that_is_no_transport_is_not_found(server: Server, what: str) -> None:
    session = await Session(server).open()
    for method in ("GET", "POST"):
        assert (await request(server, method, session.path(what))).status == 404


async def test_first_part_of_the_path_does_not_matter(server: Server) -> None:
    session = await Session(server, srv="000").open()
    elsewhere = Session(server, session.name, srv="999")
    await session.command("connect")
    [reply] = replies(await elsewhere.poll())
    assert reply["id"] == 1


# receiving


async def test_polling_response_has_one_frame_and_a_line_break(server: Server) -> None:
    session = Session(server)
    answer = await session.post(b"", {"Origin": ORIGIN}, "xhr")
    assert (answer.status, answer.body) == (200, b"o\n")
    assert answer.headers["content-type"] == SCRIPT
    assert_not_cached(answer.headers)
    assert_readable(answer.headers, ORIGIN)


async def test_message_is_one_frame_of_the_protocol(server: Server) -> None:
    session = await Session(server).open()
    await session.send(command(1, "connect"))
    async with session.receive(XHR) as receiver:
        text = await receiver.exchange.rest()
    [message] = json.loads(text.removeprefix(b"a"))
    assert text.endswith(b"\n")
    assert message.endswith("\n")
    assert json.loads(message)["id"] == 1


async def test_message_comes_to_the_request_that_waits(server: Server, unique: str) -> None:
    session = await connected(server, unique)
    waiting = asyncio.create_task(session.poll())
    await asyncio.to_thread(server.publish, unique, {"n": 1})
    assert data_of(replies(await waiting)) == [{"n": 1}]


async def test_large_message_comes_whole(server: Server, unique: str) -> None:
    session = await connected(server, unique)
    data = "x<é😀" * 100_000
    await asyncio.to_thread(server.publish, unique, data)
    assert data_of(replies(await session.poll())) == [data]


# sending


async def test_taken_frames_are_answered_with_nothing(server: Server) -> None:
    session = await Session(server).open()
    answer = await session.post(json.dumps([command(1, "connect")]).encode(), {"Origin": ORIGIN})
    assert (answer.status, answer.body) == (204, b"")
    # browsers take an answer without a type for XML, and complain
    assert answer.headers["content-type"] == TEXT
    assert_not_cached(answer.headers)
    assert_readable(answer.headers, ORIGIN)


CONTENT_TYPES = (
    "text/plain",
    "T",
    "application/json",
    "application/xml",
    "",
    "application/json; charset=utf-8",
    "text/xml; charset=utf-8",
    "text/xml",
    "application/x-www-form-urlencoded",
)


async def test_frames_of_any_content_type_are_taken(server: Server) -> None:
    session = await connected(server)
    for number, content_type in enumerate(CONTENT_TYPES, 10):
        await session.send(command(number, "ping"), **{"Content-Type": content_type})
    ids: list[int] = []
    while len(ids) < len(CONTENT_TYPES):
        ids += [reply["id"] for reply in replies(await session.poll())]
    assert ids == list(range(10, 10 + len(CONTENT_TYPES)))


BROKEN = {
    "unfinished": b'["x',
    "array of a number": b"[1]",
    "deeply nested array": b"[" * 100_000,
    "not UTF-8": b'["\xff"]',
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_body_that_is_no_array_of_strings_is_refused_and_the_session_goes_on(
    server: Server, body: bytes
) -> None:
    session = await Session(server).open()
    answer = await session.post(body, {"Origin": ORIGIN})
    assert (answer.status, answer.body) == (400, b"Broken JSON encoding.")
    assert_readable(answer.headers, ORIGIN)
    assert await session.result("connect") != {}


async def test_empty_body_is_refused_and_the_session_goes_on(server: Server) -> None:
    session = await Session(server).open()
    for body in (b"", None):
        answer = await request(server, "POST", session.path("xhr_send"), body)
        assert (answer.status, answer.body) == (400, b"Payload expected.")
    assert await session.result("connect") != {}


async def test_frames_for_an_unknown_session_are_not_taken(server: Server) -> None:
    session = Session(server)
    answer = await session.post(json.dumps([command(1, "connect")]).encode(), {"Origin": ORIGIN})
    assert answer.status == 404
    assert_readable(answer.headers, ORIGIN)
    assert await session.poll() == OPEN, "sending has begun no session"
