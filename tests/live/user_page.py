"""The panel's page of a user, as HTML."""

from __future__ import annotations

import re
from html import unescape

import httpx

from tests.panel.paths import page_path


def page(browser: httpx.Client, user: str, **query: object) -> str:
    """The page of a user, as HTML."""
    response = browser.get(page_path("user", user=user, **query))
    assert response.status_code == 200
    return response.text


def part(html: str, name: str) -> str:
    """A section of the page."""
    return html.partition(f'id="{name}"')[2].partition("</section>")[0]


def words(html: str) -> str:
    """The text of a piece of HTML, in one line."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())
