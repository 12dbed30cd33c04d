"""Cookies over SockJS: whose session it is, and which requests are believed.

Browsers send no Origin with requests for scripts and frames, and pages of any origin can read
the responses of `jsonp` and `htmlfile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.live.sockjs.client import (
    BAD_REQUEST,
    FORCED,
    JSONP,
    SERVERS,
    XHR,
    XHR_STREAMING,
    Receiver,
    Session,
    Transport,
    name_of,
)
from tests.server import Server

OWN = "http://127.0.0.1:{port}"
ELSEWHERE = "https://elsewhere.example"


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with a login."""
    return serve(environment=environment(tmp_path_factory), **OPTIONS)


BELIEVED: dict[str, dict[str, str]] = {
    "a request of the site": {"Origin": OWN},
    "an old browser": {"Referer": f"{OWN}/page?a=b"},
    "a script of the site": {"Sec-Fetch-Site": "same-origin"},
}


@pytest.mark.parametrize("headers", BELIEVED.values(), ids=BELIEVED)
async def test_session_is_whose_cookie_its_first_request_has(
    server: Server, headers: dict[str, str]
) -> None:
    username, pk = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    session = Session(server)
    session.headers = {name: value.format(port=server.port) for name, value in headers.items()}
    session.headers["Cookie"] = visitor.headers["Cookie"]
    await session.open()
    await session.result("connect")
    await session.result("subscribe", channel=f"x#{pk}")  # only this user may subscribe


STRANGE: dict[str, dict[str, str]] = {
    "nothing": {},
    "no cookie": {"Origin": OWN},
    "no proof": {"Cookie": "{cookie}"},
    "another page": {"Cookie": "{cookie}", "Origin": ELSEWHERE},
    "another cookie": {"Cookie": "sessionid=another", "Origin": OWN},
}


@pytest.mark.parametrize("kind", SERVERS)
async def test_session_of_a_visitor_is_closed_to_requests_without_the_login(
    serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    server = serve(server=kind, environment=environment(tmp_path_factory), **OPTIONS)
    username, pk = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    session = Session(server)
    session.headers = visitor.headers
    await session.open()
    await session.result("connect")
    for name, headers in STRANGE.items():
        stranger = Session(server, session.name)
        stranger.headers = {
            field: value.format(port=server.port, cookie=visitor.headers["Cookie"])
            for field, value in headers.items()
        }
        for what in ("xhr_send", "jsonp_send", "xhr", "xhr_streaming"):
            answer = await stranger.post(b'["{}"]', what=what)
            assert (answer.status, answer.body) == (403, b"Forbidden\n"), name

    await session.result("subscribe", channel=f"x#{pk}")


async def test_cookie_of_a_later_request_changes_nothing(server: Server) -> None:
    username, _ = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    for headers in ({}, visitor.headers):
        session = await Session(server).open()
        session.headers = headers
        await session.command("connect")
        assert await session.poll() == BAD_REQUEST, "nobody's"


@pytest.mark.parametrize("transport", [XHR, XHR_STREAMING, JSONP], ids=name_of)
async def test_end_of_the_login_ends_the_session(server: Server, transport: Transport) -> None:
    username, pk = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    session = Session(server)
    session.headers = visitor.headers
    await session.open()
    await session.result("connect")
    await session.result("subscribe", channel=f"x#{pk}")
    receiver = Receiver(await session.ask(transport), transport)

    await asyncio.to_thread(visitor.log_out)

    await receiver.begin()
    assert await receiver.frame() == FORCED
    await receiver.end()
    await receiver.exchange.close()
