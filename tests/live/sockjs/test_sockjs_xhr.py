"""SockJS by polling: names of sessions, frames, what clients send, characters that get lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.sockjs.client import (
    BAD_REQUEST,
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
    messages,
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


async def test_sessions_of_the_same_server_part_are_not_mixed_up(server: Server) -> None:
    one, other = await Session(server).open(), await Session(server).open()
    await one.send(command(1, "connect"))
    await other.send(command(2, "connect"))

    assert [replies(await each.poll())[0]["id"] for each in (one, other)] == [1, 2]


# receiving


async def test_polling_response_has_one_frame_and_a_line_break(server: Server) -> None:
    session = Session(server)

    answer = await session.post(b"", {"Origin": ORIGIN}, "xhr")

    assert (answer.status, answer.body) == (200, b"o\n")
    assert answer.headers["content-type"] == SCRIPT
    assert_not_cached(answer.headers)
    assert_readable(answer.headers, ORIGIN)


async def test_polling_request_may_have_any_body(server: Server) -> None:
    """Browsers send none or an empty one; it is of no interest."""
    session = Session(server)

    answer = await session.post(b'["a"]', {"Content-Type": "text/plain"}, "xhr")

    assert answer.body == b"o\n"


async def test_message_is_one_frame_of_the_protocol(server: Server) -> None:
    session = await Session(server).open()
    await session.send(command(1, "connect"))

    async with session.receive(XHR) as receiver:
        text = await receiver.exchange.rest()

    [message] = json.loads(text.removeprefix(b"a"))
    assert text.endswith(b"\n")
    assert message.endswith("\n")
    assert json.loads(message)["id"] == 1


async def test_replies_that_wait_come_in_order_each_a_message_of_its_own(server: Server) -> None:
    session = await connected(server)
    await session.send(*(command(number, "ping") for number in range(10, 20)))
    ids: list[int] = []

    while len(ids) < 10:
        frame = await session.poll()
        assert [message.count("\n") for message in messages(frame)] == [1] * len(replies(frame))
        ids += [reply["id"] for reply in replies(frame)]

    assert ids == list(range(10, 20))


async def test_message_comes_to_the_request_that_waits(server: Server, unique: str) -> None:
    session = await connected(server, unique)
    waiting = asyncio.create_task(session.poll())

    await asyncio.to_thread(server.publish, unique, {"n": 1})

    assert data_of(replies(await waiting)) == [{"n": 1}]


async def test_messages_between_polls_are_neither_lost_nor_mixed_up(
    server: Server, unique: str
) -> None:
    session = await connected(server, unique)
    count = 300

    def publish() -> None:
        for number in range(count):
            server.publish(unique, number)

    publishing = asyncio.create_task(asyncio.to_thread(publish))
    received: list[Any] = []
    while len(received) < count:
        received += data_of(replies(await session.poll()))
    await publishing

    assert received == list(range(count))


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


async def test_single_string_is_taken_as_one_frame(server: Server) -> None:
    session = await Session(server).open()

    answer = await session.post(json.dumps(command(1, "connect")).encode())

    assert answer.status == 204
    assert replies(await session.poll())[0]["id"] == 1


async def test_array_without_strings_is_taken_and_does_nothing(server: Server) -> None:
    session = await connected(server)

    assert (await session.post(b"[]")).status == 204
    assert (await session.post(b" [ ] ")).status == 204

    assert await session.result("ping") == {}


BROKEN = {
    "unfinished": b'["x',
    "no JSON": b"x",
    "number": b"1",
    "null": b"null",
    "object": b'{"a":"b"}',
    "array of a number": b"[1]",
    "array of null": b'["{}",null]',
    "nested array": b'[["a"]]',
    "deeply nested array": b"[" * 100_000,
    "something behind": b'["{}"]x',
    "trailing comma": b'["{}",]',
    "single quotes": b"['{}']",
    "two arrays": b'["{}"]["{}"]',
    "UTF-16": '["{}"]'.encode("utf-16"),
    "not UTF-8": b'["\xff"]',
    "surrogate in UTF-8": b'["\xed\xa0\x80"]',
    "control character": b'["\x01"]',
    "NUL": b"\x00",
    "only white space": b" ",
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


async def test_empty_string_is_an_empty_frame_which_is_a_bad_request(server: Server) -> None:
    session = await connected(server)

    await session.send("")

    assert await session.poll() == BAD_REQUEST


async def test_string_may_hold_several_commands(server: Server) -> None:
    session = await Session(server).open()

    await session.send(command(1, "connect") + "\n" + command(2, "ping") + command(3, "ping"))

    ids: list[int] = []
    while len(ids) < 3:
        ids += [reply["id"] for reply in replies(await session.poll())]
    assert ids == [1, 2, 3]
