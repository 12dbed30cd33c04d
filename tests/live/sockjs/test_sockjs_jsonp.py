"""SockJS by scripts: JSONP polling, and forms that send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.live.sockjs.client import (
    BAD_REQUEST,
    FORM,
    JSONP,
    OPEN,
    OPTIONS,
    SCRIPT,
    SERVERS,
    TEXT,
    Session,
    assert_not_cached,
    assert_readable,
    command,
    connected,
    data_of,
    replies,
    request,
)
from tests.protocol_client import ProtocolClient
from tests.server import Server

ORIGIN = "http://page.example"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


# receiving


async def test_response_calls_the_callback_with_the_frame(server: Server) -> None:
    answer = await request(
        server, "GET", Session(server).path("jsonp") + "?c=%63allback", None, {"Origin": ORIGIN}
    )

    assert (answer.status, answer.body) == (200, b'callback("o");\r\n')
    assert answer.headers["content-type"] == SCRIPT
    assert_not_cached(answer.headers)
    assert_readable(answer.headers, ORIGIN)


async def test_quotes_in_frames_are_escaped_for_the_script(server: Server) -> None:
    session = await Session(server).open(JSONP)
    await session.send(command(1, "connect"))
    assert replies(await session.poll(JSONP))[0]["id"] == 1

    await session.send('{"id":2,"method":77}')
    answer = await request(server, "GET", session.path("jsonp") + "?c=f")

    reply = (
        r"{\\\"id\\\":2,\\\"error\\\":{\\\"code\\\":104,\\\"message\\\":\\\"method not found\\\"}}"
    )
    assert answer.body.decode() == f'f("a[\\"{reply}\\\\n\\"]");\r\n'


async def test_script_holds_nothing_that_a_page_or_a_script_takes_amiss(
    server: Server, unique: str
) -> None:
    text = "</script><!--&\u2028\u2029\uffff\u200c'"
    session = await Session(server).open(JSONP)
    await session.result("connect")
    await session.result("subscribe", channel=unique)

    await asyncio.to_thread(server.publish, unique, text)
    answer = await request(server, "GET", session.path("jsonp") + "?c=callback")

    script = answer.body.decode()
    assert not set(script) & set("<>&\u2028\u2029\uffff\u200c")
    assert data_of(replies(JSONP.unwrap(script))) == [text]


@pytest.mark.parametrize("name", ["x", "_jp.abc123", "a-b_c.d"])
async def test_callback_may_have_these_characters(server: Server, name: str) -> None:
    answer = await request(server, "GET", f"{Session(server).path('jsonp')}?c={name}&t=1")

    assert answer.body == f'{name}("o");\r\n'.encode()


@pytest.mark.parametrize("query", ["", "?", "?c=", "?d=callback"])
async def test_request_without_a_callback_is_refused(server: Server, query: str) -> None:
    answer = await request(server, "GET", Session(server).path("jsonp") + query)

    assert answer.status == 500
    assert b'"callback" parameter required' in answer.body


@pytest.mark.parametrize("name", ["%20", "*", "abc(", "abc%28", "alert%281%29", "a%0A", "%C3%A9"])
async def test_callback_that_is_no_name_is_refused(server: Server, name: str) -> None:
    session = Session(server)

    answer = await request(server, "GET", f"{session.path('jsonp')}?c={name}")

    assert answer.status == 400
    assert b'invalid "callback" parameter' in answer.body
    assert (await session.post(b"[]")).status == 404, "no session has begun"


# sending


async def sent(session: Session, body: bytes, content_type: str | None = FORM) -> tuple[int, bytes]:
    """Status and body of the answer to a form that sends."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = await session.post(body, headers, "jsonp_send")
    return answer.status, answer.body


def form(*frames: str) -> bytes:
    """A form with frames, as browsers encode it."""
    return urlencode({"d": json.dumps(frames)}).encode()


async def test_form_that_is_taken_is_answered_ok(server: Server) -> None:
    session = await Session(server).open(JSONP)

    answer = await session.post(
        form(command(1, "connect")), {"Content-Type": FORM, "Origin": ORIGIN}, "jsonp_send"
    )

    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["content-type"] == TEXT
    assert_not_cached(answer.headers)
    assert_readable(answer.headers, ORIGIN)
    assert replies(await session.poll(JSONP))[0]["id"] == 1


FRAME = '[" {\\"id\\":1} "]'
FORMS = {
    "form": (FORM, f"d={quote(FRAME)}"),
    "form with a charset": (f"{FORM}; charset=UTF-8", f"d={quote(FRAME)}"),
    "form in capitals": (FORM.upper(), f"d={quote(FRAME)}"),
    "form with plus signs": (FORM, f"d={quote(FRAME, safe=' ').replace(' ', '+')}"),
    "form with more fields": (FORM, f"x=1&d={quote(FRAME)}&y="),
    "form with two of it": (FORM, f"d={quote(FRAME)}&d={quote('[1]')}"),
    "form hardly encoded": (FORM, f"d={FRAME}"),
    "plain text": ("text/plain", FRAME),
    "JSON": ("application/json", FRAME),
    "no type": (None, FRAME),
    "one string": ("text/plain", FRAME[1:-1]),
}


@pytest.mark.parametrize(("content_type", "body"), FORMS.values(), ids=FORMS)
async def test_frames_are_found_in_a_form_and_in_other_bodies(
    server: Server, content_type: str | None, body: str
) -> None:
    session = await Session(server).open(JSONP)

    assert await sent(session, body.encode(), content_type) == (200, b"ok")

    assert replies(await session.poll(JSONP))[0]["id"] == 1


async def observed(
    server: Server, connect: Callable[..., Any], channel: str
) -> tuple[Session, ProtocolClient]:
    """A session that is connected, and another client that is subscribed to a channel."""
    observer: ProtocolClient = await connect(server)
    await observer.result("subscribe", {"channel": channel})
    return await connected(server), observer


async def test_body_that_is_no_form_is_not_decoded_as_one(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    """Percent signs and plus signs mean themselves."""
    session, observer = await observed(server, connect, f"kept:{unique}")
    text = "%61b+c&d=1"
    body = json.dumps([command(5, "publish", channel=f"kept:{unique}", data=text)]).encode()

    assert await sent(session, body, "text/plain") == (200, b"ok")

    assert (await observer.publication())["data"] == text


async def test_every_character_survives_a_form(
    server: Server, connect: Callable[..., Any], unique: str
) -> None:
    session, observer = await observed(server, connect, f"kept:{unique}")
    text = "%+&=;?# \t é\u2028\uffff😀"

    assert await sent(
        session, form(command(5, "publish", channel=f"kept:{unique}", data=text))
    ) == (200, b"ok")

    assert (await observer.publication())["data"] == text


BROKEN = {
    "unfinished": b"d=%5B%22x",
    "no JSON": b"d=x",
    "number": b"d=1",
    "object": b"d=%7B%7D",
    "array of numbers": b"d=%5B1%5D",
    "not UTF-8": b"d=%5B%22%FF%22%5D",
    "raw bytes that are not UTF-8": b'd=["\xff"]',
    "hundreds of fields": b"&".join([b"a=1"] * 500) + b"&d=%5B%5D",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_form_with_something_else_is_refused_and_the_session_goes_on(
    server: Server, body: bytes
) -> None:
    session = await Session(server).open(JSONP)

    assert await sent(session, body) == (400, b"Broken JSON encoding.")

    assert await sent(session, form(command(1, "connect"))) == (200, b"ok")
    assert replies(await session.poll(JSONP))[0]["id"] == 1


@pytest.mark.parametrize("body", [b"", b"d=", b"p=p", b"d", b"&"])
async def test_form_without_frames_is_refused(server: Server, body: bytes) -> None:
    session = await Session(server).open(JSONP)

    assert await sent(session, body) == (400, b"Payload expected.")


async def test_array_without_strings_is_taken_and_does_nothing(server: Server) -> None:
    session = await Session(server).open(JSONP)

    assert await sent(session, form()) == (200, b"ok")

    assert await session.result("connect") != {}


async def test_empty_string_is_an_empty_frame_which_is_a_bad_request(server: Server) -> None:
    session = await Session(server).open(JSONP)

    assert await sent(session, form("")) == (200, b"ok")

    assert await session.poll(JSONP) == BAD_REQUEST
    assert await sent(session, form(command(1, "connect"))) == (404, b"Not Found\n")


async def test_form_for_an_unknown_session_is_not_taken(server: Server) -> None:
    session = Session(server)

    assert (await sent(session, form(command(1, "connect"))))[0] == 404

    assert await session.poll(JSONP) == OPEN
