"""SockJS beside its sessions: greeting, what the server can do, the iframe page, CORS, caching."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

import pytest

from tests.live.raw_http import open_exchange
from tests.live.sockjs.client import (
    ALLOWED_ORIGIN,
    HTML,
    OPTIONS,
    PREFIX,
    QUICK,
    SERVERS,
    TEXT,
    assert_not_cached,
    assert_readable,
    request,
)
from tests.server import Server

GREETING = b"Welcome to SockJS!\n"
YEAR = 365 * 24 * 3600


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **OPTIONS)


@pytest.fixture(params=SERVERS)
def quick(request: pytest.FixtureRequest, serve: Callable[..., Server]) -> Server:
    return serve(server=request.param, **QUICK)


def assert_cached(headers: Mapping[str, str]) -> None:
    """The response may be kept for a year, by anybody."""
    assert headers["cache-control"] == f"public, max-age={YEAR}"
    expires = parsedate_to_datetime(headers["expires"]).timestamp()
    assert time.time() + YEAR - 60 < expires < time.time() + YEAR + 60
    assert "last-modified" not in headers


# greeting


async def test_greeting_tells_that_sockjs_is_here(server: Server) -> None:
    answer = await request(server, "GET", "/")
    assert (answer.status, answer.body) == (200, GREETING)
    assert answer.headers["content-type"] == TEXT


async def test_prefix_without_a_slash_is_redirected_to_the_greeting(server: Server) -> None:
    answer = await request(server, "GET", "")
    assert answer.status == 301
    assert urljoin(PREFIX, answer.headers["location"]) == f"{PREFIX}/"


UNKNOWN = ("/a", "//", "/a/a/", "/info/", "/INFO", "/websocket")


@pytest.mark.parametrize("path", UNKNOWN)
async def test_other_paths_are_not_found(server: Server, path: str) -> None:
    for method in ("GET", "POST"):
        assert (await request(server, method, path)).status == 404


async def test_connection_goes_on_after_a_response(server: Server) -> None:
    """HTTP/1.1: a second request on the same connection."""
    exchange = await open_exchange(server, "GET", f"{PREFIX}/")
    await exchange.begin()
    assert await exchange.rest() == GREETING
    head = f"GET {PREFIX}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    await exchange.write(head.encode())
    second = exchange.next()

    await second.begin()

    assert (second.status, await second.rest()) == (200, GREETING)
    await second.close()


async def test_client_of_http_1_0_is_greeted_without_chunks(server: Server) -> None:
    exchange = await open_exchange(server, "GET", f"{PREFIX}/", version="1.0")
    await exchange.begin()
    assert (exchange.status, await exchange.rest()) == (200, GREETING)
    assert "transfer-encoding" not in exchange.headers
    await exchange.close()


# info


async def test_info_tells_what_the_server_can_do(server: Server) -> None:
    answer = await request(server, "GET", "/info")

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json; charset=UTF-8"
    assert_not_cached(answer.headers)
    content = json.loads(answer.body)
    entropy = content.pop("entropy")
    assert type(entropy) is int
    assert 0 <= entropy < 2**32
    assert content == {"websocket": True, "cookie_needed": False, "origins": ["*:*"]}


async def test_query_of_info_does_not_matter(server: Server) -> None:
    assert (await request(server, "GET", "/info?t=1234")).status == 200


@pytest.mark.parametrize("origin", [None, "http://page.example:8080", "null"])
async def test_info_is_readable_from_any_origin(server: Server, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    answer = await request(server, "GET", "/info", headers=headers)
    assert_readable(answer.headers, origin or "*")


async def test_origin_that_is_not_allowed_gets_no_cors_headers(quick: Server) -> None:
    refused, allowed, none = [
        await request(quick, "GET", "/info", headers=headers)
        for headers in ({"Origin": "https://other.example"}, {"Origin": ALLOWED_ORIGIN}, {})
    ]
    assert [answer.status for answer in (refused, allowed, none)] == [200, 200, 200]
    assert not [name for name in refused.headers if name.startswith("access-control")]
    assert_readable(allowed.headers, ALLOWED_ORIGIN)
    assert_readable(none.headers, "*")


# preflight requests

PREFLIGHTS = {
    "/info": "OPTIONS, GET",
    "/0/0/xhr": "OPTIONS, POST",
    "/0/0/xhr_streaming": "OPTIONS, POST",
    "/0/0/xhr_send": "OPTIONS, POST",
    "/0/0/jsonp": "OPTIONS, POST",
}


@pytest.mark.parametrize(("path", "methods"), PREFLIGHTS.items(), ids=PREFLIGHTS)
async def test_preflight_request_is_answered_for_a_year(
    server: Server, path: str, methods: str
) -> None:
    headers = {"Origin": "http://page.example", "Access-Control-Request-Method": methods[-4:]}
    answer = await request(server, "OPTIONS", path, headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-methods"] == methods
    assert answer.headers["access-control-max-age"] == str(YEAR)
    assert_cached(answer.headers)
    assert_readable(answer.headers, "http://page.example")


@pytest.mark.parametrize("path", PREFLIGHTS)
async def test_headers_a_page_wants_to_send_are_allowed(server: Server, path: str) -> None:
    headers = {"Origin": "null", "Access-Control-Request-Headers": "a, b, c"}
    answer = await request(server, "OPTIONS", path, headers=headers)
    assert answer.headers["access-control-allow-headers"] == "a, b, c"
    assert_readable(answer.headers, "null")


async def test_preflight_request_of_an_origin_that_is_not_allowed_allows_nothing(
    quick: Server,
) -> None:
    headers = {"Origin": "https://other.example", "Access-Control-Request-Headers": "a"}
    answer = await request(quick, "OPTIONS", "/0/0/xhr", headers=headers)
    assert answer.status == 204
    for name in ("origin", "credentials", "headers"):
        assert f"access-control-allow-{name}" not in answer.headers


# the iframe page

IFRAMES = ("iframe", "iframe-0.1.2abc-dirty.2144")


@pytest.mark.parametrize("name", IFRAMES)
async def test_iframe_page_is_not_there_unless_it_is_asked_for(server: Server, name: str) -> None:
    assert (await request(server, "GET", f"/{name}.html")).status == 404


@pytest.mark.parametrize("name", IFRAMES)
@pytest.mark.parametrize("query", ["", "?t=1234"])
async def test_iframe_page_names_who_may_frame_it(quick: Server, name: str, query: str) -> None:
    answer = await request(quick, "GET", f"/{name}.html{query}")
    assert answer.status == 200
    assert answer.headers["content-type"] == HTML
    assert answer.headers["cache-control"] == "public, no-cache"
    policy = answer.headers["content-security-policy"].split("; ")
    assert f"frame-ancestors 'self' {ALLOWED_ORIGIN}" in policy
    assert b"SockJS.bootstrap_iframe();" in answer.body


NO_IFRAMES = (
    "iframe.htm",
    "IFRAME.HTML",
    "xiframe.html",
    "iframe.html/",
    "iframe.html%0A",
    "iframe-%2F.html",
)


@pytest.mark.parametrize("name", NO_IFRAMES)
async def test_page_of_another_name_is_not_found(quick: Server, name: str) -> None:
    assert (await request(quick, "GET", f"/{name}")).status == 404


async def test_iframe_page_has_one_tag_whatever_its_name(quick: Server) -> None:
    answers = [await request(quick, "GET", f"/{name}.html") for name in IFRAMES]
    [tag] = {answer.headers["etag"] for answer in answers}
    assert tag.startswith('"')
    assert tag.endswith('"')


async def test_iframe_page_that_is_known_is_not_sent_again(quick: Server) -> None:
    tag = (await request(quick, "GET", "/iframe.html")).headers["etag"]
    answer = await request(quick, "GET", "/iframe.html", headers={"If-None-Match": tag})
    assert (answer.status, answer.body) == (304, b"")
    assert "content-type" not in answer.headers
    assert answer.headers["etag"] == tag
    assert "content-security-policy" in answer.headers


async def test_iframe_page_that_has_changed_is_sent(quick: Server) -> None:
    answer = await request(quick, "GET", "/iframe.html", headers={"If-None-Match": '"old"'})
    assert answer.status == 200
    assert b"SockJS.bootstrap_iframe();" in answer.body


# verbs

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
    server: Server, path: str, verbs: str
) -> None:
    known = set(verbs.split(", "))
    for method in {"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"} - known:
        answer = await request(server, method, path)
        assert (answer.status, answer.body) == (405, b""), method
        assert "content-type" not in answer.headers
        allowed = set(answer.headers["allow"].split(", "))
        assert allowed >= known
        assert method not in allowed


# options


async def test_sockjs_can_be_turned_off(serve: Callable[..., Server]) -> None:
    server = serve(sockjs_disable=True)
    for method, path in (("GET", "/"), ("GET", "/info"), ("POST", "/0/0/xhr")):
        assert (await request(server, method, path)).status == 404


async def test_sockjs_can_be_moved(serve: Callable[..., Server]) -> None:
    server = serve(sockjs_handler_prefix="/moved/sock.js")
    statuses = []
    for path in ("/moved/sock.js/info", "/moved/sock.js", f"{PREFIX}/info", "/moved/sockxjs/info"):
        exchange = await open_exchange(server, "GET", path)
        await exchange.begin()
        statuses.append(exchange.status)
        await exchange.close()
    assert statuses == [200, 301, 404, 404]
