"""Fixtures of the tests of the client module; a plugin of those test modules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from selenium.webdriver import Chrome

from tests.browser import browsing, leave, start_browser
from tests.live.client_module.live_page import LivePage
from tests.live.client_module.page import OPTIONS, ClientPage
from tests.live.hooks_site import environment
from tests.server import Server


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser for all tests of the module; each of them loads the page anew."""
    browser = start_browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def keeping_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One that shows a page as it was left to a visitor who goes back."""
    with browsing(tmp_path_factory.mktemp("profile"), keeps_pages=True) as browser:
        yield browser


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a server that has the page."""
    return environment(tmp_path_factory, "browser")


@pytest.fixture
def server(serve: Callable[..., Server], site: dict[str, str]) -> Server:
    """A server shared between tests; it writes offsets."""
    return serve(environment=site, **OPTIONS)


@pytest.fixture
def seq_server(serve: Callable[..., Server], site: dict[str, str]) -> Server:
    """As `server`; it writes seq and gen."""
    return serve(environment=site, **OPTIONS | {"v3_use_offset": False})


@pytest.fixture
def hasty_server(serve: Callable[..., Server], site: dict[str, str]) -> Server:
    """As `server`; it closes expired connections a second later."""
    return serve(environment=site, **OPTIONS, client_expired_close_delay=1)


@pytest.fixture
def channel(unique: str) -> str:
    """A channel with recovery, which no other test uses."""
    return f"rec:{unique}"


@pytest.fixture
async def page(server: Server, chromium: Chrome) -> AsyncIterator[ClientPage]:
    """The page, loaded from `server`. Errors that nobody caught fail the test."""
    page = await ClientPage(chromium).open(server.address)
    yield page
    assert await page.leave() == []


@pytest.fixture
async def live(server: Server, chromium: Chrome, unique: str) -> AsyncIterator[LivePage]:
    """A page with live elements, not opened yet. Errors that nobody caught fail the test."""
    page = LivePage(chromium, server, f"rec:{unique}")
    yield page
    assert await page.run("return failures") == []
    await asyncio.to_thread(leave, chromium)
