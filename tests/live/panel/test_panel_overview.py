"""The panel's overview in a served site: nodes, totals, counters, charts without a script."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from tests.live.panel_site import Guests
from tests.panel.paths import page_path
from tests.ready_site import ReadySite
from tests.server import wait_until

TILE = re.compile(r"<div><dt>([^<]*)</dt><dd>([\d,]+)</dd></div>")
CELL = re.compile(r'data-label="([^"]*)">([^<]*)</td>')


@pytest.fixture
def alone(operator: httpx.Client, guests: Guests) -> Guests:
    """The clients of this test, and no others: those of the test before have gone."""
    wait_until(lambda: tiles(operator)["Clients"] == 0, what="a site without clients")
    return guests


def page(browser: httpx.Client) -> str:
    response = browser.get(page_path("overview"))
    assert response.status_code == 200
    return response.text


def number(text: str) -> int:
    return int(text.replace(",", ""))


def tiles(browser: httpx.Client) -> dict[str, int]:
    """The large numbers."""
    return {name: number(text) for name, text in TILE.findall(page(browser))}


def node_row(html: str) -> dict[str, str]:
    """The only row of the table of nodes."""
    body = html.partition('id="nodes"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    assert body.count("<tr") == 1, body
    return {label: unescape(text).strip() for label, text in CELL.findall(body)}


async def test_totals_count_clients_users_and_channels(
    operator: httpx.Client, alone: Guests, unique: str
) -> None:
    await alone.open("17", f"{unique}-one", f"{unique}-two")
    await alone.open("17", f"{unique}-two")
    await alone.open("18")
    assert tiles(operator) == {"Nodes": 1, "Clients": 3, "Users": 2, "Channels": 2}


async def test_table_shows_what_the_server_api_says_of_the_node(
    staffed_site: ReadySite, operator: httpx.Client, alone: Guests, unique: str
) -> None:
    await alone.open("17", unique)
    [reply] = staffed_site.api({"method": "info", "params": {}})
    [node] = reply["result"]["nodes"]

    html = page(operator)

    row = node_row(html)
    assert f'title="{node["uid"]}">{node["name"]}</bdi>' in html
    assert row["Version"] == node["version"]
    assert (row["Clients"], row["Users"], row["Channels"]) == ("1", "1", "1")
    assert re.fullmatch(r"\d+ (minute|second)s?", row["Uptime"])


async def test_counters_grow_with_what_is_published_and_delivered(
    staffed_site: ReadySite, operator: httpx.Client, alone: Guests, unique: str
) -> None:
    clients = [await alone.open(user, unique) for user in ("17", "18")]
    before = node_row(page(operator))

    staffed_site.publish(unique, 1, 2, 3)
    for client in clients:
        for _ in range(3):
            await client.publication()

    after = node_row(page(operator))
    assert number(after["Published"]) - number(before["Published"]) == 3
    assert number(after["Delivered"]) - number(before["Delivered"]) == 2 * 3


def test_memory_engine_shows_no_round_trip_and_nothing_to_worry_about(
    operator: httpx.Client,
) -> None:
    html = page(operator)
    assert "Redis" not in html
    assert "panel-warnings" not in html


def test_start_of_the_node_is_among_the_events(operator: httpx.Client) -> None:
    html = operator.get(page_path("events", kind="nodes")).text
    assert re.search(r"<bdi>Node \S+ started\.</bdi>", html)
