"""A visitor whom an application knows by a cookie, and a stranger who knows a session's name."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.live.proxy.application import Answer, Application, Request
from tests.live.sockjs.client import (
    EVENTSOURCE,
    HTMLFILE,
    JSONP,
    XHR,
    Session,
    Transport,
    command,
    name_of,
)
from tests.server import Server

PAGE = "http://app.example"
COOKIE = {"Cookie": "visitor=alice"}


def known_by_cookie(request: Request) -> Answer:
    user = (request.headers.get("Cookie") or "").removeprefix("visitor=").partition(";")[0]
    return Answer({"result": {"user": user}})


@pytest.fixture
def server(serve: Callable[..., Server], application: Application) -> Server:
    """A service for the pages of one origin, whose application reads cookies."""
    application.answers["/connect"] = known_by_cookie
    endpoint = application.url("/connect")
    return serve(allowed_origins=[PAGE], proxy_connect_endpoint=endpoint)


@pytest.mark.parametrize("transport", [EVENTSOURCE, HTMLFILE, JSONP], ids=name_of)
async def test_link_that_a_visitor_opens_makes_no_session_for_a_stranger(
    server: Server, application: Application, unique: str, transport: Transport
) -> None:
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    opened = await Session(server, unique).ask(transport, **COOKIE, **link)
    await opened.begin()
    stranger = Session(server, unique)

    sent = await stranger.post(json.dumps([command(1, "connect")]).encode())

    assert (opened.status, sent.status) == (403, 404)
    assert application.requests == []
    await opened.close()


async def test_session_of_a_visitor_is_closed_to_a_stranger(server: Server, unique: str) -> None:
    """The page of the site may choose a name that others know."""
    begun = await Session(server, unique).ask(XHR, **COOKIE, Origin=PAGE)
    await begun.begin()
    assert begun.status == 200
    cookie = begun.headers["set-cookie"].partition(";")[0]
    await begun.close()
    stranger, visitor = Session(server, unique), Session(server, unique)
    visitor.headers = {"Cookie": f"visitor=signed-anew; {cookie}", "Origin": PAGE}

    for what in ("xhr_send", "jsonp_send", "xhr", "xhr_streaming"):
        assert (await stranger.post(b'["{}"]', what=what)).status == 403

    result = await visitor.result("connect")
    assert result["client"]


async def test_program_with_a_token_and_a_cookie_jar_goes_on(server: Server, unique: str) -> None:
    """It sends neither Origin nor cookies of the site, but the cookie that it got from us."""
    program = Session(server, unique)
    program.headers = {"Authorization": "Bearer token"}
    begun = await program.ask(XHR)
    await begun.begin()
    cookie = begun.headers["set-cookie"].partition(";")[0]
    await begun.close()

    program.headers = {"Authorization": "Bearer renewed", "Cookie": cookie}

    result = await program.result("connect")
    assert result["client"]
