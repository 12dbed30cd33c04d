"""What is refused for good is in the console of the page, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from selenium.webdriver import Chrome

from tests.browser import console, wait_for
from tests.conftest import connection_token
from tests.live.client_module.page import OPTIONS, ClientPage
from tests.server import Server

DOCUMENTED = "see docs/javascript.md"

TOKEN = {"token": connection_token("17")}
REFUSED: dict[str, tuple[dict[str, Any], str, int]] = {
    "nobody is logged in": ({}, "", 3003),
    "bad token": ({"token": "no token"}, "", 3002),
    "expired token": ({"token": connection_token("17", ttl=-10)}, "", 109),
    "unknown namespace": (TOKEN, "nowhere:1", 102),
    "private channel without a token": (TOKEN, "$lounge:1", 103),
    "channel of another user": (TOKEN, "lounge:1#18", 103),
}
"""Options of the client, the channel it subscribes to, and the code with which that ends."""


async def warnings(browser: Chrome) -> list[str]:
    """What the console has, once it has anything."""
    found: list[str] = []

    def look() -> bool:
        found.extend(console(browser))
        return bool(found)

    await asyncio.to_thread(wait_for, browser, look, "something in the console")
    return found


async def test_refusal_is_in_the_console_once(
    server: Server, chromium: Chrome, page: ClientPage
) -> None:
    for name, (options, channel, code) in REFUSED.items():
        await page.open(server.address)
        console(chromium)
        for _ in range(2):
            await page.make(server.socket, **options)
            await page.run("client.connect()")
            if channel:
                await page.run("subscribe(args[0], {})", channel)
                assert (await page.event("sub:error", channel))["code"] == code, name
            else:
                assert (await page.event("disconnect"))["code"] == code, name

        [warning] = await warnings(chromium)
        assert DOCUMENTED in warning, name


async def test_empty_token_of_the_site_is_in_the_console(
    server: Server, chromium: Chrome, page: ClientPage
) -> None:
    console(chromium)
    await page.make(server.socket, "{ getToken: async () => '' }")
    await page.run("client.connect()")
    [warning] = await warnings(chromium)
    assert DOCUMENTED in warning


async def test_console_says_nothing_of_what_the_page_does_or_the_client_repeats(
    own_server: Callable[..., Server], site: dict[str, str], chromium: Chrome, page: ClientPage
) -> None:
    server = own_server(environment=site, **OPTIONS)
    console(chromium)
    await page.connected(server.socket)
    await page.subscribe("lounge:1")
    await page.run("client.subscribe('lounge:1').unsubscribe(); client.disconnect()")
    await page.event("disconnect")

    await page.connect()
    server.terminate()
    lost = await page.event("disconnect")

    assert lost["reconnect"]
    assert [each for each in console(chromium) if DOCUMENTED in each] == []


async def test_warning_names_code_and_reason(
    server: Server, chromium: Chrome, page: ClientPage
) -> None:
    await page.run("window.said = []; console.warn = (...parts) => said.push(parts)")
    await page.make(server.socket)
    await page.run("client.connect()")
    await page.event("disconnect")
    [[text, why]] = await page.run("return said")
    assert text == "realtime refused, see docs/javascript.md:"
    assert json.dumps(why) == '{"code": 3003, "reason": "bad request"}'
