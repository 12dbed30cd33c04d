"""The publish page as a browser without JavaScript sees it: sending its form, reading its parts."""

from __future__ import annotations

from html import unescape
from typing import Any

import httpx

from tests.live.panel_staff import post
from tests.panel.paths import page_path
from tests.protocol_client import ProtocolClient
from tests.ready_site import ReadySite

PAGE = page_path("publication")


def send(browser: httpx.Client, channel: str, data: str = "1", **fields: str) -> httpx.Response:
    """Send the form, as its page would."""
    fields |= {"channel": channel, "data": data}
    return post(browser, PAGE, **fields)


def field(html: str, name: str) -> str:
    """What a textarea of the page holds."""
    area = html.partition(f'<textarea name="{name}"')[2].partition("</textarea>")[0]
    return unescape(area.partition(">")[2]).strip()


def reach(html: str) -> str:
    """The part of the page that says what a publication reaches, with its spaces made one."""
    part = html.partition('class="panel-reach"')[2].partition("</section>")[0]
    return " ".join(unescape(part).split())


def errors_of_channel(html: str) -> str:
    return unescape(html.partition('field-channel errors"')[2].partition("</ul>")[0])


def recent(html: str) -> list[str]:
    """The rows of what was published last."""
    table = html.partition('id="recent"')[2].partition("</tbody>")[0].partition("<tbody>")[2]
    return [unescape(row) for row in table.split("</tr>") if "<tr>" in row]


async def published(client: ProtocolClient) -> Any:
    """The data of the next publication; in the namespace demo, joins come between them."""
    while True:
        push = await client.push()
        if push.get("type", 0) == 0:
            return push["data"]["data"]


async def assert_nothing_came(site: ReadySite, client: ProtocolClient, channel: str) -> None:
    """The first publication a client gets is one that is sent now."""
    site.publish(channel, "the first")
    assert await published(client) == "the first"
