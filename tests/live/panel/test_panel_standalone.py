"""The panel by itself, served: its pages, who is signed in, and the site around it."""

from __future__ import annotations

import httpx
import pytest

from admin_panel.pages import PAGES
from admin_panel.standalone.shared_operator import PLACEHOLDER_NAME
from tests.live.configurations import Connect
from tests.live.standalone_site import send
from tests.panel.standalone_parts import PATHS, SIGN_OUT
from tests.server import Server


@pytest.mark.parametrize("path", PATHS)
def test_page_is_served_at_the_root_with_its_tabs_and_headers(
    browser: httpx.Client, path: str
) -> None:
    response = browser.get(path)
    assert response.status_code == (404 if path == "/node/" else 200)  # it names no node
    assert "/admin/realtime_admin/" not in response.text
    for page, place in zip(PAGES, PATHS, strict=True):
        assert (f'<a href="{place}"' in response.text) or not page.listed
    assert "script-src 'self';" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Frame-Options"] == "DENY"


def test_page_says_who_is_signed_in(browser: httpx.Client) -> None:
    tools = browser.get("/").text.partition('id="user-tools"')[2].partition("</header>")[0]
    assert "shared password" in tools
    assert f'action="{SIGN_OUT}"' in tools


async def test_operator_with_the_password_publishes(
    browser: httpx.Client, server: Server, connect: Connect, unique: str
) -> None:
    client = await connect(server, user=unique)
    await client.result("subscribe", {"channel": unique})
    send(browser, "/publication/", channel=unique, data='{"text":"hi"}')
    assert await client.publication() == {"data": {"text": "hi"}}
    row = browser.get("/publication/").text.partition(unique)[0].rpartition("<tr>")[2]
    assert PLACEHOLDER_NAME in row


def test_other_paths_of_the_site_are_as_before(browser: httpx.Client) -> None:
    assert browser.get("/demo").status_code == 200
    assert browser.get("/admin/login/").status_code == 200
    assert browser.get("/nothing/").status_code == 404
