"""Which pages may use which door: every transport, by what a browser says of the page."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.node.hooks import Handshake, Hooks
from realtime.node.node import Node
from realtime.transports.sockjs.application import SockJS
from realtime.transports.sockjs.websocket import SockJSConsumer
from realtime.transports.streaming.application import Streaming
from realtime.transports.streaming.uni_websocket import UniWebSocketConsumer
from realtime.transports.websocket import WebSocketConsumer
from tests.unit.parts import Clock, eventually
from tests.unit.transports.emulation.parts import open_node
from tests.unit.transports.streaming.visits import Visit

OWN = "https://example.org"
LISTED = "https://app.example"
ELSEWHERE = "https://elsewhere.example"


class CookieReader(Hooks):
    """A site with a hook, which may read cookies."""

    wants_handshake = True

    def trusts_page(self, handshake: Handshake) -> bool:
        return handshake.headers["origin"] == f"https://{handshake.host}"


SITUATIONS: Mapping[str, tuple[bool, Hooks]] = {
    "A": (True, CookieReader()),
    "B": (False, CookieReader()),
    "C": (False, Hooks()),
    "D": (True, Hooks()),
}
"""Whether `allowed_origins` lists the page, and what of the site decides."""

COOKIE = {"cookie": "visitor=alice"}
SAME = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
CROSS = {**SAME, "sec-fetch-site": "cross-site"}
FRAME = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

PAGES: Mapping[str, tuple[dict[str, str], str]] = {
    "a program": ({}, "ABCD"),
    "a program with a mode, as Node's fetch": ({"sec-fetch-mode": "cors"}, "ABCD"),
    "a program with a token": ({"authorization": "Bearer x"}, "ABCD"),
    "a program that keeps our cookie": ({"cookie": "realtime_session=x"}, "ABCD"),
    "our cookie and another": ({"cookie": "realtime_session=x; visitor=alice"}, "CD"),
    "a cookie named like ours": ({"cookie": "Realtime_session=x"}, "CD"),
    "a cookie without a name": ({"cookie": "realtime_session=x; =alice"}, "CD"),
    "a cookie and nothing more": (COOKIE, "CD"),
    "an old browser, this host": ({**COOKIE, "referer": f"{OWN}/page"}, "BCD"),
    "an old browser, a listed page": ({**COOKIE, "referer": f"{LISTED}/page"}, "ACD"),
    "an old browser, elsewhere": ({**COOKIE, "referer": f"{ELSEWHERE}/"}, "CD"),
    "an old browser, a strange page": ({**COOKIE, "referer": "https://[x"}, "CD"),
    "the listed origin": ({"origin": LISTED}, "ACD"),
    "the listed origin with a cookie": ({**COOKIE, **CROSS, "origin": LISTED}, "ACD"),
    "the origin of this host": ({**COOKIE, **SAME, "origin": OWN}, "BC"),
    "an origin elsewhere": ({"origin": ELSEWHERE}, "C"),
    "an origin elsewhere with a cookie": ({**COOKIE, **CROSS, "origin": ELSEWHERE}, "C"),
    "an origin elsewhere that says same-origin": ({**SAME, "origin": ELSEWHERE}, "C"),
    "a sandbox": ({**COOKIE, **CROSS, "origin": "null"}, "C"),
    "same origin": ({**COOKIE, **SAME}, "ABCD"),
    "a frame of the same origin": ({**COOKIE, **SAME, **FRAME}, "ABCD"),
    "a frame elsewhere": ({**COOKIE, **CROSS, **FRAME}, "C"),
    "a script elsewhere": ({**COOKIE, **CROSS, "sec-fetch-dest": "script"}, "C"),
    "another part of the site": ({**COOKIE, "sec-fetch-site": "same-site"}, "C"),
    "an extension": ({**COOKIE, "sec-fetch-site": "none"}, "C"),
    "a link elsewhere": ({**COOKIE, **CROSS, **LINK}, ""),
    "a link elsewhere, no cookie": ({**CROSS, **LINK}, ""),
    "a link of this site": ({**COOKIE, **SAME, **LINK}, ""),
    "an address that the user wrote": ({"sec-fetch-site": "none", **LINK}, ""),
}
"""Headers, and the situations in which they are let in by HTTP."""

SOCKJS = "/connection/sockjs/000/{session}/"
REQUESTS = [
    ("POST", SOCKJS + "xhr"),
    ("POST", SOCKJS + "xhr_streaming"),
    ("POST", SOCKJS + "xhr_send"),
    ("GET", SOCKJS + "eventsource"),
    ("GET", SOCKJS + "htmlfile"),
    ("GET", SOCKJS + "jsonp"),
    ("POST", SOCKJS + "jsonp_send"),
    ("POST", "/connection/http_stream"),
    ("GET", "/connection/sse"),
    ("POST", "/connection/sse"),
    ("POST", "/emulation"),
    ("POST", "/connection/uni_http_stream"),
    ("GET", "/connection/uni_sse"),
    ("POST", "/connection/uni_sse"),
    ("GET", "/connection/events"),
]
STREAMS = ("http_stream", "sse", "uni_http_stream", "uni_sse", "events")


async def status(node: Node, method: str, path: str, headers: Mapping[str, str]) -> int:
    """Send a request to the application that serves it, and leave when its response begins."""
    application = SockJS(None) if "/sockjs/" in path else Streaming()
    path, headers = path.format(session=uuid.uuid4().hex), {"host": "example.org", **headers}
    visit = Visit(application, node, path, "c=callback&channel=news", b"{}", headers, method)
    await eventually(lambda: bool(visit.sent))
    visit.serving.cancel()
    await asyncio.gather(visit.serving, return_exceptions=True)
    return visit.status


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_request_of_a_page_that_may_not_use_the_service_is_refused(
    clock: Clock, situation: str, method: str, path: str
) -> None:
    is_listed, hooks = SITUATIONS[situation]
    options: dict[str, Any] = dict.fromkeys(STREAMS, True)
    options |= {"allowed_origins": [LISTED]} if is_listed else {}
    async with open_node(clock, **options) as node:
        node.hooks = hooks

        refused = {
            name
            for name, (headers, _) in PAGES.items()
            if await status(node, method, path, headers) == 403
        }

    assert refused == {name for name, (_, let_in) in PAGES.items() if situation not in let_in}


def handshake_of(headers: Mapping[str, str]) -> Any:
    pairs = {"host": "example.org", **headers}.items()
    return {
        "type": "websocket",
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
    }


SOCKETS: Mapping[type[WebSocketConsumer], str] = {
    WebSocketConsumer: "BC",
    SockJSConsumer: "BC",
    UniWebSocketConsumer: "C",
}
"""Consumer → the situations in which pages of any origin may connect."""


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("consumer", "any_page"), SOCKETS.items())
async def test_socket_of_a_page_that_may_not_use_the_service_is_refused(
    clock: Clock, situation: str, consumer: type[WebSocketConsumer], any_page: str
) -> None:
    """Browsers send Origin with every handshake: one without it is of a program."""
    is_listed, hooks = SITUATIONS[situation]
    options: dict[str, Any] = {"allowed_origins": [LISTED]} if is_listed else {}
    async with open_node(clock, **options) as node:
        node.hooks = hooks

        refused = {
            name
            for name, (headers, _) in PAGES.items()
            if not consumer().admits(node.config, node, handshake_of(headers))
        }

    assert refused == {
        name
        for name, (headers, let_in) in PAGES.items()
        if "origin" in headers and situation not in any_page and situation not in let_in
    }


@pytest.mark.parametrize("what", ["xhr_send", "xhr_streaming"])
@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({**SAME, "origin": OWN}, False),
        ({"origin": OWN.upper()}, False),
        ({**CROSS, "origin": OWN}, True),
        ({"origin": "https://example.org.elsewhere.example"}, True),
        ({"origin": ELSEWHERE}, True),
        ({"origin": "null"}, True),
        ({**SAME, **LINK, "origin": OWN}, True),
    ],
)
async def test_iframe_page_may_use_sockjs_though_its_origin_is_not_listed(
    clock: Clock, what: str, headers: dict[str, str], is_refused: bool
) -> None:
    async with open_node(clock, allowed_origins=[LISTED], sockjs_iframe=True) as node:
        node.hooks = CookieReader()
        answer = await status(node, "POST", SOCKJS + what, {**COOKIE, **headers})
    assert (answer == 403) is is_refused
