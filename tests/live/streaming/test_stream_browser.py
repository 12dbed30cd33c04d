"""HTTP streams in a real browser: today's published library, with requests to `/emulation`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

import pytest
from selenium.webdriver import Chrome

from tests.browser import leave
from tests.conftest import connection_token
from tests.js_builds import require_packages
from tests.live.event_page import EventPage
from tests.live.streaming.client import EMULATION, STREAMS
from tests.server import Server, wait_until
from tests.tcp_proxy import TcpProxy

OPTIONS: dict[str, Any] = STREAMS | {"allowed_origins": ["http://127.0.0.1:*"]}


class Way(NamedTuple):
    """A transport, and the build of the library that uses it."""

    transport: str
    library: str


JSON = Way("http_stream", "centrifuge-5")
PROTOBUF = Way("http_stream", "centrifuge-5-protobuf")
SSE = Way("sse", "centrifuge-5")
every_way = pytest.mark.parametrize(
    "way", [JSON, PROTOBUF, SSE], ids=["http_stream", "http_stream-protobuf", "sse"]
)


class Page(EventPage):
    """The page in a browser; see tests/site/streams.html."""

    def __init__(self, browser: Chrome) -> None:
        super().__init__(browser, "streams")

    def start(self, way: Way, down: str, up: str, channel: str) -> None:
        """Connect and subscribe. `down` and `up`: where the server is, for streams and requests."""
        stream = f"{down}/connection/{way.transport}"
        token = connection_token("17")
        self.run("start(...arguments)", way.library, way.transport, stream, up + EMULATION, token)
        assert self.event("connected")["transport"] == way.transport
        self.run("subscribe(arguments[0])", channel)

    def publications(self, count: int) -> list[Any]:
        """Wait for this many publications; return their data."""
        return [self.event("publication") for _ in range(count)]


@pytest.fixture(scope="module")
def browser(clean_browser: Chrome) -> Chrome:
    """One browser for all tests; each of them loads the page anew."""
    require_packages("centrifuge-5")
    clean_browser.set_script_timeout(20)  # the page gives up before
    return clean_browser


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(**OPTIONS)


@pytest.fixture
def page(server: Server, browser: Chrome) -> Iterator[Page]:
    """The page, loaded from `server`. Uncaught errors fail the test."""
    page = Page(browser)
    page.open(server.address)
    yield page
    assert page.run("return failures") == []
    leave(browser)


@pytest.fixture
async def cut(server: Server) -> AsyncIterator[TcpProxy]:
    """A proxy in front of the server, of another origin than the page."""
    async with TcpProxy(server.address) as proxy:
        yield proxy


def present(server: Server, channel: str) -> int:
    """How many clients are in a channel."""
    return len(server.api("presence", channel=channel)["result"]["presence"])


@every_way
def test_page_that_is_loaded_anew_goes_on_where_it_was(
    page: Page, server: Server, way: Way, unique: str
) -> None:
    channel = f"recover:{unique}"
    page.start(way, server.address, server.address, channel)
    page.event("subscribed")
    odd = ["a\nb", "</script>", "é 🚀 \u2028\ufffe"]
    for text in odd:
        page.run("publish(...arguments)", channel, text)
        assert page.publications(1) == [text]

    page.reload()
    server.publish(channel, "meanwhile")
    page.start(way, server.address, server.address, channel)

    context = page.event("subscribed")
    assert (context["wasRecovering"], context["recovered"]) == (True, True)
    assert page.publications(1) == ["meanwhile"]
    wait_until(lambda: present(server, channel) == 1)  # the page before has left


@every_way
async def test_page_recovers_after_a_cut(
    page: Page, server: Server, cut: TcpProxy, way: Way, unique: str
) -> None:
    channel = f"recover:{unique}"
    down, up = cut.url, server.address
    await asyncio.to_thread(page.start, way, down, up, channel)
    await asyncio.to_thread(page.event, "subscribed")
    await asyncio.to_thread(server.publish, channel, 1)
    assert await asyncio.to_thread(page.publications, 1) == [1]

    cut.refuse()
    for value in (2, 3):
        await asyncio.to_thread(server.publish, channel, value)
    cut.allow()

    context = await asyncio.to_thread(page.event, "subscribed")
    assert (context["wasRecovering"], context["recovered"]) == (True, True)
    page.run("publish(...arguments)", channel, 4)
    assert await asyncio.to_thread(page.publications, 3) == [2, 3, 4]
