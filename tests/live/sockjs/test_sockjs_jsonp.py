"""SockJS by scripts: JSONP polling, and forms that send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.live.sockjs.client import (
    FORM,
    JSONP,
    OPTIONS,
    SCRIPT,
    SERVERS,
    TEXT,
    Session,
    assert_not_cached,
    assert_readable,
    command,
    connected,
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


async def test_request_without_a_callback_is_refused(server: Server) -> None:
    answer = await request(server, "GET", Session(server).path("jsonp"))
    assert answer.status == 500
    assert b'"callback" parameter required' in answer.body


async def test_callback_that_is_no_name_is_refused(server: Server) -> None:
    session = Session(server)
    answer = await request(server, "GET", session.path("jsonp") + "?c=alert%281%29")
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
    "form with plus signs": (FORM, f"d={quote(FRAME, safe=' ').replace(' ', '+')}"),
    "plain text": ("text/plain", FRAME),
    "no type": (None, FRAME),
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
    "no JSON": b"d=x",
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


@pytest.mark.parametrize("body", [b"", b"d="])
async def test_form_without_frames_is_refused(server: Server, body: bytes) -> None:
    session = await Session(server).open(JSONP)
    assert await sent(session, body) == (400, b"Payload expected.")
