"""Requests below the prefix of SockJS: what each is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from realtime.config.options import Config
from realtime.config.reader import load
from realtime.node.node import Node
from realtime.transports.sockjs import formats
from realtime.transports.sockjs.application import SockJS, serves_sockjs
from tests.unit.parts import Clock
from tests.unit.transports.emulation.parts import CONNECT, OPEN, PREFIX, ids_in, open_node
from tests.unit.transports.streaming.visits import Visit

PAGE = "http://page.example:8080"
ALLOWED = "https://site.example"
ELSEWHERE = "https://elsewhere.example"
QUICK: Mapping[str, Any] = {"allowed_origins": [ALLOWED], "sockjs_iframe": True}
YEAR = 365 * 24 * 3600
TEXT = b"text/plain; charset=UTF-8"
NOT_CACHED = b"no-store, no-cache, no-transform, must-revalidate, max-age=0"
FRAME_LIMIT = 65_536
"""`websocket_message_size_limit`, bytes."""


class Door:
    """SockJS at a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sockjs = SockJS(None)

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Visit:
        """Send a request below the prefix, and wait for the end of the response."""
        path, _, query = path.partition("?")
        fields = {name.replace("_", "-"): value for name, value in headers.items() if value}
        prefix = self._node.config.sockjs_handler_prefix
        visit = Visit(self._sockjs, self._node, prefix + path, query, body, fields, method)
        await visit.serving
        return visit

    async def poll(self, session: str = "s") -> str:
        return (await self.ask("POST", f"/000/{session}/xhr")).text.removesuffix("\n")


@pytest.fixture
async def door(clock: Clock) -> Any:
    async with open_node(clock, websocket_message_size_limit=FRAME_LIMIT) as node:
        yield Door(node)


@pytest.fixture
async def quick(clock: Clock) -> Any:
    async with open_node(clock, **QUICK) as node:
        yield Door(node)


def cors_of(visit: Visit) -> dict[str, str]:
    """The headers of CORS, by the rest of their names."""
    start = b"access-control-"
    return {
        name.removeprefix(start).decode(): value.decode()
        for name, value in visit.headers.items()
        if name.startswith(start)
    }


def readable(origin: str) -> dict[str, str]:
    """The headers of CORS that let a page of this origin read a response."""
    return {"allow-origin": origin, "allow-credentials": "true"}


# the server


async def test_greeting_and_its_redirect(door: Door) -> None:
    greeting, redirect = await door.ask("GET", "/"), await door.ask("GET", "")
    assert (greeting.status, greeting.text) == (200, "Welcome to SockJS!\n")
    assert greeting.headers[b"content-type"] == TEXT
    assert (redirect.status, redirect.headers[b"location"]) == (301, b"./sockjs/")


UNKNOWN = (
    *("/a", "//", "/a/a/", "/info/", "/INFO", "/websocket", "/iframe.html"),
    *(f"{part}/xhr" for part in ("//", "/a./a", "/a/a.", "/./.", "/", "///", "/a/a/a")),
    *(f"/0/s/{what}" for what in ("xhr/", "xhr_send/", "xhr_stream", "XHR", "", "websocket/")),
    *(f"/0/{'y' * 129}/{what}" for what in ("xhr", "xhr_send", "eventsource")),
)


@pytest.mark.parametrize("path", UNKNOWN)
async def test_other_paths_are_not_found(door: Door, path: str) -> None:
    for method in ("GET", "POST"):
        assert (await door.ask(method, path, b"[]")).status == 404


NAMES = ("a", "_", "b c", "<b>", "\"'\\", "é😀", "\0\n", "x;a=1", "y" * 128)


@pytest.mark.parametrize("name", NAMES)
async def test_session_may_have_any_name_and_the_part_before_it_does_not_matter(
    door: Door, name: str
) -> None:
    assert await door.poll(name) == OPEN
    answer = await door.ask(
        "POST", f"/{'9' * 1000}/{name}/xhr_send", json.dumps([CONNECT]).encode()
    )
    assert answer.status == 204
    assert ids_in([await door.poll(name)]) == [1]


async def test_info_tells_what_the_server_can_do(door: Door) -> None:
    answer = await door.ask("GET", "/info?t=1234")
    assert (answer.status, answer.headers[b"cache-control"]) == (200, NOT_CACHED)
    assert answer.headers[b"content-type"] == b"application/json; charset=UTF-8"
    content = json.loads(answer.text)
    entropy = content.pop("entropy")
    assert type(entropy) is int
    assert 0 <= entropy < 2**32
    assert content == {"websocket": True, "cookie_needed": False, "origins": ["*:*"]}


@pytest.mark.parametrize("origin", [PAGE, "null", ""])
async def test_info_is_readable_from_any_origin(door: Door, origin: str) -> None:
    answer = await door.ask("GET", "/info", origin=origin)
    assert cors_of(answer) == readable(origin or "*")
    # what a cache keeps for one origin is not for another one
    assert answer.headers[b"vary"] == b"Origin"


@pytest.mark.parametrize(
    ("origin", "expected"), [(ELSEWHERE, {}), (ALLOWED, readable(ALLOWED)), ("", readable("*"))]
)
async def test_origin_that_is_not_allowed_gets_no_headers_of_cors(
    quick: Door, origin: str, expected: dict[str, str]
) -> None:
    answer = await quick.ask("GET", "/info", origin=origin)
    assert (answer.status, cors_of(answer)) == (200, expected)


PREFLIGHTS = {
    "/info": "OPTIONS, GET",
    "/0/0/xhr": "OPTIONS, POST",
    "/0/0/xhr_streaming": "OPTIONS, POST",
    "/0/0/xhr_send": "OPTIONS, POST",
    "/0/0/jsonp": "OPTIONS, POST",
}


@pytest.mark.parametrize(("path", "methods"), PREFLIGHTS.items(), ids=PREFLIGHTS)
async def test_preflight_request_is_answered_for_a_year(
    door: Door, quick: Door, path: str, methods: str
) -> None:
    wanted = "a, b, c"
    answer = await door.ask("OPTIONS", path, origin=PAGE, access_control_request_headers=wanted)
    assert (answer.status, answer.text) == (204, "")
    assert answer.headers[b"cache-control"] == b"public, max-age=%d" % YEAR
    assert b"expires" in answer.headers
    told = {"allow-methods": methods, "max-age": str(YEAR)}
    assert cors_of(answer) == {**readable(PAGE), **told, "allow-headers": wanted}

    refused = await quick.ask(
        "OPTIONS", path, origin=ELSEWHERE, access_control_request_headers=wanted
    )

    assert (refused.status, cors_of(refused)) == (204, told)


VERBS = {
    "": "GET",
    "/": "GET",
    "/info": "OPTIONS, GET",
    "/0/0/xhr": "POST, OPTIONS",
    "/0/0/xhr_streaming": "POST, OPTIONS",
    "/0/0/xhr_send": "POST, OPTIONS",
    "/0/0/eventsource": "GET",
    "/0/0/htmlfile": "GET",
    "/0/0/jsonp": "GET, OPTIONS",
    "/0/0/jsonp_send": "POST",
    "/0/0/websocket": "GET",
}
"""Path → verbs it knows at least (docs/protocol.md, 8)."""


@pytest.mark.parametrize(("path", "verbs"), VERBS.items(), ids=lambda value: value or "prefix")
async def test_other_verb_is_refused_with_those_that_are_known(
    door: Door, path: str, verbs: str
) -> None:
    known = set(verbs.split(", "))
    for method in {"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "BREW", "get"} - known:
        answer = await door.ask(method, path)
        assert (answer.status, answer.text) == (405, ""), method
        assert b"content-type" not in answer.headers
        allowed = set(answer.headers[b"allow"].decode().split(", "))
        assert allowed >= known
        assert method not in allowed


async def test_plain_request_for_the_socket_is_refused(door: Door) -> None:
    answer = await door.ask("GET", "/0/0/websocket")
    assert (answer.status, answer.headers[b"sec-websocket-version"]) == (400, b"13")


def test_sockjs_can_be_turned_off() -> None:
    paths = (PREFIX, f"{PREFIX}/", f"{PREFIX}/info", f"{PREFIX}/0/0/xhr", f"{PREFIX}x")
    assert [serves_sockjs(path, load({})) for path in paths] == [True] * 4 + [False]
    assert not any(serves_sockjs(path, Config(sockjs_disable=True)) for path in paths)


# the iframe page

IFRAMES = ("/iframe.html", "/iframe-0.1.2abc-dirty.2144.html", "/iframe.html?t=1234")


@pytest.mark.parametrize("path", IFRAMES)
async def test_iframe_page_names_who_may_frame_it(quick: Door, path: str) -> None:
    answer = await quick.ask("GET", path, if_none_match='"old"')
    assert (answer.status, answer.headers[b"content-type"]) == (200, formats.HTML.encode())
    assert answer.headers[b"cache-control"] == b"public, no-cache"
    policy = answer.headers[b"content-security-policy"].decode().split("; ")
    assert f"frame-ancestors 'self' {ALLOWED}" in policy
    assert "SockJS.bootstrap_iframe();" in answer.text


@pytest.mark.parametrize(
    "path", ["/iframe.htm", "/IFRAME.HTML", "/xiframe.html", "/iframe.html/", "/iframe.html\n"]
)
async def test_page_of_another_name_is_not_found(quick: Door, path: str) -> None:
    assert (await quick.ask("GET", path)).status == 404


async def test_iframe_page_that_is_known_is_not_sent_again(quick: Door) -> None:
    [tag] = {(await quick.ask("GET", path)).headers[b"etag"] for path in IFRAMES}
    answer = await quick.ask("GET", IFRAMES[0], if_none_match=tag.decode())
    assert (tag[:1], tag[-1:]) == (b'"', b'"')
    assert (answer.status, answer.text, answer.headers[b"etag"]) == (304, "", tag)
    assert b"content-type" not in answer.headers
    assert b"content-security-policy" in answer.headers


# what clients send

TAKEN = json.dumps([CONNECT]).encode()
FORM = "application/x-www-form-urlencoded"
FRAMES: Mapping[str, tuple[str, bytes, int, str]] = {
    "frames": ("xhr_send", TAKEN, 204, ""),
    "frames of a script": ("jsonp_send", TAKEN, 200, "ok"),
    "no JSON": ("xhr_send", b'["x', 400, "Broken JSON encoding."),
    "no strings": ("jsonp_send", b"[1]", 400, "Broken JSON encoding."),
    "nothing": ("xhr_send", b"", 400, "Payload expected."),
    "an empty field": ("jsonp_send", b"d=", 400, "Payload expected."),
    "a form of frames": ("jsonp_send", b"d=%5B%22%7B%5C%22id%5C%22:1%7D%22%5D", 200, "ok"),
    "a form of no frames": ("jsonp_send", b"d=%5B%22%FF%22%5D", 400, "Broken JSON encoding."),
    "a large frame": (
        *("xhr_send", json.dumps(["x" * (FRAME_LIMIT + 1)]).encode()),
        *(413, "Content Too Large\n"),
    ),
}
"""What, path and body; the response."""


@pytest.mark.parametrize(("what", "body", "status", "text"), FRAMES.values(), ids=FRAMES)
async def test_frames_are_taken_or_refused_and_the_session_goes_on(
    door: Door, what: str, body: bytes, status: int, text: str
) -> None:
    assert await door.poll() == OPEN
    kind = FORM if body.startswith(b"d=") else ""
    answer = await door.ask("POST", f"/0/s/{what}", body, origin=PAGE, content_type=kind)
    assert (answer.status, answer.text) == (status, text)
    # browsers take an answer without a type for XML, and complain
    assert (answer.headers[b"content-type"], answer.headers[b"cache-control"]) == (TEXT, NOT_CACHED)
    assert cors_of(answer) == readable(PAGE)
    if status >= 400:
        assert (await door.ask("POST", "/0/s/xhr_send", TAKEN)).status == 204
    assert ids_in([await door.poll()]) == [1]


@pytest.mark.parametrize(
    "kind", ["text/plain", "T", "application/xml", "text/xml; charset=utf-8", FORM]
)
async def test_frames_of_any_content_type_are_taken(door: Door, kind: str) -> None:
    await door.poll()
    assert (await door.ask("POST", "/0/s/xhr_send", TAKEN, content_type=kind)).status == 204


async def test_frames_for_an_unknown_session_begin_none(door: Door) -> None:
    answer = await door.ask("POST", "/0/s/xhr_send", TAKEN, origin=PAGE)
    assert (answer.status, cors_of(answer)) == (404, readable(PAGE))
    assert await door.poll() == OPEN


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("htmlfile", 400, '"callback" parameter required\n'),
        ("jsonp", 500, '"callback" parameter required\n'),
        ("htmlfile?c=a%0Ab", 400, 'invalid "callback" parameter\n'),
        ("jsonp?c=" + "a" * 5000, 400, 'invalid "callback" parameter\n'),
    ],
)
async def test_callback_that_is_no_name_begins_no_session(
    door: Door, path: str, status: int, text: str
) -> None:
    answer = await door.ask("GET", f"/0/s/{path}")
    assert (answer.status, answer.text) == (status, text)
    assert (await door.ask("POST", "/0/s/xhr_send", TAKEN)).status == 404
