"""SockJS in a real browser: the published libraries on a page, over each of their transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome

from tests.browser import console, leave
from tests.conftest import connection_token
from tests.js_builds import require_packages
from tests.live.event_page import EventPage
from tests.server import Server, wait_until
from tests.tcp_proxy import TcpProxy

OPTIONS: dict[str, Any] = {
    "sockjs_url": "/libraries/sockjs.js",
    "sockjs_iframe": True,
    "allowed_origins": ["http://127.0.0.1:*", "http://localhost:*"],
    "namespaces": [{"name": "chat", "publish": True, "presence": True}],
}

STREAMING = (
    "xhr-streaming",
    "eventsource",
    "htmlfile",
    "iframe-eventsource",
    "iframe-htmlfile",
)
POLLING = ("xhr-polling", "iframe-xhr-polling", "jsonp-polling")
TRANSPORTS = ("websocket", *STREAMING, *POLLING)

OWN_ORIGIN_ONLY = ("htmlfile", "jsonp-polling")
"""Browsers send no Origin for frames and scripts: with `allowed_origins` it must be the same."""

NONE_LEFT = {"code": 2000, "reason": "All transports failed"}


class Page(EventPage):
    """The page in a browser; see tests/site/sockjs.html."""

    def __init__(self, browser: Chrome) -> None:
        super().__init__(browser, "sockjs")

    def start(self, url: str, user: str, **options: Any) -> dict[str, Any]:
        """Connect a client to a server at this URL; returns the context of that event."""
        token = connection_token(user)
        self.run("start(...arguments)", url + "/connection/sockjs", token, options)
        context: dict[str, Any] = self.event("connect")
        return context

    def publications(self, count: int) -> list[Any]:
        """Wait for this many publications; return their data."""
        return [self.event("publish")["data"] for _ in range(count)]

    def end_of_session(self, url: str, transport: str) -> dict[str, Any]:
        """What a SockJS session that cannot begin says in the end."""
        self.run("open(...arguments)", url + "/connection/sockjs", [transport])
        end: dict[str, Any] = self.event("close")
        return end


@pytest.fixture(scope="module")
def browser(clean_browser: Chrome) -> Chrome:
    """One browser for all tests; each of them loads the page anew."""
    require_packages()
    clean_browser.set_script_timeout(20)  # the page gives up before
    return clean_browser


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    """A server that serves the library for iframes as well."""
    return serve(**OPTIONS)


@pytest.fixture
def page(server: Server, browser: Chrome) -> Iterator[Page]:
    """The page, loaded from `server`. Uncaught errors fail the test."""
    page = Page(browser)
    page.open(server.address)
    yield page
    assert page.run("return failures") == []
    leave(browser)


def other_origin(server: Server) -> str:
    """The same server, at an address of another origin and another site."""
    return server.address.replace("127.0.0.1", "localhost")


def exchange(page: Page, server: Server, transport: str, unique: str) -> None:
    """Everything a page wants of a transport; the page may be of any origin.

    Responses end after 128 KiB; another one follows.
    """
    channel = f"chat:{unique}"
    odd = ["100% %41 %zz", "a+b&d=1;", "</script>", "é 🚀 \u2028\ufffe"]

    context = page.start(server.address, unique, sockjsTransports=[transport])
    assert context["transport"] == f"sockjs-{transport}"
    page.run("subscribe(arguments[0])", channel)
    page.event("subscribe")

    for text in odd:
        page.run("centrifuge.publish(...arguments)", channel, text)
    assert page.publications(len(odd)) == odd
    for text in odd:
        server.publish(channel, text)
    assert page.publications(len(odd)) == odd
    large = [f"{number} " + "x" * 50_000 for number in range(8)]
    for text in large:
        server.publish(channel, text)
    assert page.publications(len(large)) == large
    assert page.run("return events") == []

    server.api("disconnect", user=unique)
    assert page.event("disconnect") == {"reason": "force disconnect", "reconnect": False}
    wait_until(lambda: server.api("presence", channel=channel) == {"result": {"presence": {}}})


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_page_of_the_same_origin_exchanges_messages(
    page: Page, server: Server, transport: str, unique: str
) -> None:
    exchange(page, server, transport, unique)


@pytest.mark.parametrize("transport", [name for name in TRANSPORTS if name not in OWN_ORIGIN_ONLY])
def test_page_of_another_origin_exchanges_messages(
    page: Page, server: Server, transport: str, unique: str
) -> None:
    page.open(other_origin(server))
    exchange(page, server, transport, unique)


@pytest.mark.parametrize("transport", [*STREAMING, *POLLING])
def test_session_of_a_visitor_with_cookies_goes_on_while_they_change(
    page: Page, serve: Callable[..., Server], transport: str, unique: str
) -> None:
    """An application may know visitors by cookies, so a session is of one browser."""
    server = serve(**OPTIONS, proxy_connect_endpoint="http://127.0.0.1:1/")
    page.open(server.address)
    page.run("document.cookie = 'visitor=alice; path=/'")
    page.start(server.address, unique, sockjsTransports=[transport])
    page.run("document.cookie = 'visitor=signed-anew; path=/'")

    page.run("subscribe(arguments[0])", f"chat:{unique}")
    page.event("subscribe")
    for text in ("one", "two"):
        page.run("centrifuge.publish(...arguments)", f"chat:{unique}", text)
        assert page.publications(1) == [text]

    assert page.run("return document.cookie") == "visitor=signed-anew"
    assert page.run("return events") == []


# what cannot be


@pytest.mark.parametrize("transport", OWN_ORIGIN_ONLY)
def test_transport_without_origin_is_for_pages_of_the_same_origin(
    page: Page, server: Server, transport: str
) -> None:
    page.open(other_origin(server))
    assert page.end_of_session(server.address, transport) == NONE_LEFT


def test_page_of_an_origin_that_is_not_allowed_cannot_begin(
    page: Page, serve: Callable[..., Server]
) -> None:
    """It may not even read /info, without which the library tries no transport."""
    server = serve(**{**OPTIONS, "allowed_origins": ["http://127.0.0.1:*"]})
    page.open(other_origin(server))
    end = page.end_of_session(server.address, "jsonp-polling")
    assert end == {"code": 1002, "reason": "Cannot connect to server"}


def test_page_of_an_origin_that_is_not_allowed_cannot_frame_ours(
    page: Page, serve: Callable[..., Server], browser: Chrome
) -> None:
    server = serve(**{**OPTIONS, "allowed_origins": ["http://127.0.0.1:*"]})
    page.open(other_origin(server))
    console(browser)

    page.run(
        "document.body.append(document.createElement('iframe'));"
        "document.querySelector('iframe').src = arguments[0];",
        server.address + "/connection/sockjs/iframe.html",
    )

    wait_until(lambda: "frame-ancestors" in "".join(console(browser)))


async def test_page_behind_a_proxy_without_websocket_falls_back_by_itself(
    page: Page, server: Server, unique: str
) -> None:
    proxy = TcpProxy(server.address, forbidden=b"upgrade: websocket")
    await proxy.start()
    try:
        context = await asyncio.to_thread(page.start, proxy.url, unique)
        page.run("subscribe(arguments[0])", unique)
        await asyncio.to_thread(page.event, "subscribe")
        await asyncio.to_thread(server.publish, unique, "heard")

        # the next one in the client's own list that the browser has
        assert context["transport"] == "sockjs-xhr-streaming"
        assert await asyncio.to_thread(page.publications, 1) == ["heard"]
    finally:
        await proxy.stop()
