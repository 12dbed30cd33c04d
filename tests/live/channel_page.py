"""The panel's channel page as HTML: what it shows, for tests without JavaScript."""

from __future__ import annotations

import re
from html import unescape

import httpx

from tests.panel.paths import page_path

SUMMARY = re.compile(r"<div><dt>([^<]*)</dt><dd>([\d,]+)")
OFFSET = re.compile(r'<span class="panel-offset">#(\d+)</span>')
DATA = re.compile(r"<code data-json>(.*?)</code>", re.DOTALL)
USER = re.compile(r'<th scope="row">(.*?)</th>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")


def shown(browser: httpx.Client, channel: str, **query: object) -> str:
    """The page of a channel."""
    response = browser.get(page_path("channel", channel=channel, **query))
    assert response.status_code == 200, response.status_code
    return response.text


def section(html: str, name: str) -> str:
    """One part of the page."""
    return html.partition(f'id="channel-{name}"')[2].partition("</section>")[0]


def summary(html: str) -> dict[str, int]:
    """The large numbers."""
    return {name: int(number.replace(",", "")) for name, number in SUMMARY.findall(html)}


def data_in(html: str) -> list[str]:
    return [unescape(text) for text in DATA.findall(html)]


def users_in(html: str) -> list[str]:
    return [unescape(TAG.sub("", cell)).strip() for cell in USER.findall(html)]
