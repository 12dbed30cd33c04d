"""Cookies over SockJS: whose session it is, and which requests are believed.

Browsers send no Origin with requests for scripts and frames, and pages of any origin can read
the responses of `jsonp` and `htmlfile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from tests.live.hooks_site import OPTIONS, Visitor, create_user, environment
from tests.live.sockjs.client import (
    BAD_REQUEST,
    EVENTSOURCE,
    FORCED,
    HTMLFILE,
    JSONP,
    OPEN,
    POLLING,
    XHR,
    XHR_STREAMING,
    Receiver,
    Session,
    Transport,
    name_of,
    replies,
)
from tests.server import Server

OWN = "http://127.0.0.1:{port}"
ELSEWHERE = "https://elsewhere.example"


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The site with a login."""
    return serve(environment=environment(tmp_path_factory), **OPTIONS)


async def begin(
    server: Server, transport: Transport, headers: Mapping[str, str], channel: str = "x"
) -> list[str]:
    """Begin a session by a request with these headers, connect, subscribe; returns two frames,
    or one that closes."""
    session = Session(server)
    filled = {name: value.format(port=server.port) for name, value in headers.items()}
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(session.receive(transport, **filled))
        assert await receiver.frame() == OPEN
        receive = session.poll if transport in POLLING else receiver.frame
        frames: list[str] = []
        for method, params in (("connect", {}), ("subscribe", {"channel": channel})):
            await session.command(method, **params)
            frames.append(await receive())
            if frames[-1].startswith("c"):
                break
    return frames


BELIEVED = {
    "xhr of the site": (XHR, {"Origin": OWN}),
    "xhr without an origin": (XHR, {}),
    "xhr_streaming of the site": (XHR_STREAMING, {"Origin": OWN}),
    "eventsource of the site": (EVENTSOURCE, {"Origin": OWN}),
    "eventsource without an origin": (EVENTSOURCE, {}),
    "jsonp of the site": (JSONP, {"Sec-Fetch-Site": "same-origin"}),
    "jsonp of no page": (JSONP, {"Sec-Fetch-Site": "none"}),
    "jsonp with its origin": (JSONP, {"Origin": OWN}),
    "htmlfile of the site": (HTMLFILE, {"Sec-Fetch-Site": "same-origin"}),
}


@pytest.mark.parametrize(("transport", "headers"), BELIEVED.values(), ids=BELIEVED)
async def test_session_is_whose_cookie_its_first_request_has(
    server: Server, transport: Transport, headers: dict[str, str]
) -> None:
    username, pk = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)

    headers = headers | {"Cookie": visitor.headers["Cookie"]}
    frames = await begin(server, transport, headers, f"x#{pk}")

    [connected], [subscribed] = map(replies, frames)
    assert "error" not in connected
    assert "error" not in subscribed, "only this user may subscribe"


REFUSED = {
    "xhr of another page": (XHR, {"Origin": ELSEWHERE}),
    "xhr of a file": (XHR, {"Origin": "null"}),
    "xhr_streaming of another page": (XHR_STREAMING, {"Origin": ELSEWHERE}),
    "eventsource of another page": (EVENTSOURCE, {"Origin": ELSEWHERE}),
    "jsonp of an old browser": (JSONP, {}),
    "jsonp of another page": (JSONP, {"Sec-Fetch-Site": "cross-site"}),
    "jsonp of another part of the site": (JSONP, {"Sec-Fetch-Site": "same-site"}),
    "jsonp of another origin": (JSONP, {"Origin": ELSEWHERE, "Sec-Fetch-Site": "same-origin"}),
    "htmlfile of an old browser": (HTMLFILE, {}),
    "htmlfile of another page": (HTMLFILE, {"Sec-Fetch-Site": "cross-site"}),
}


@pytest.mark.parametrize(("transport", "headers"), REFUSED.values(), ids=REFUSED)
async def test_cookie_that_any_page_may_have_sent_is_not_believed(
    server: Server, transport: Transport, headers: dict[str, str]
) -> None:
    username, _ = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)

    frames = await begin(server, transport, headers | {"Cookie": visitor.headers["Cookie"]})

    assert frames == [BAD_REQUEST]


async def test_session_without_a_cookie_is_nobodys(server: Server) -> None:
    assert await begin(server, XHR, {"Origin": OWN}) == [BAD_REQUEST]


async def test_cookie_of_a_later_request_changes_nothing(server: Server) -> None:
    username, _ = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    session = await Session(server).open()

    await session.send('{"id":1}', **visitor.headers)

    assert await session.poll(XHR, **visitor.headers) == BAD_REQUEST


@pytest.mark.parametrize("transport", [XHR, XHR_STREAMING, JSONP], ids=name_of)
async def test_end_of_the_login_ends_the_session(server: Server, transport: Transport) -> None:
    username, pk = await asyncio.to_thread(create_user, server)
    visitor = await asyncio.to_thread(Visitor, server, username)
    session = await Session(server).open(XHR, **visitor.headers)
    await session.result("connect")
    await session.result("subscribe", channel=f"x#{pk}")
    receiver = Receiver(await session.ask(transport), transport)

    await asyncio.to_thread(visitor.log_out)

    await receiver.begin()
    assert await receiver.frame() == FORCED
    await receiver.end()
    await receiver.exchange.close()
