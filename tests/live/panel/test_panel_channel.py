"""The panel's channel page in a served site: options, presence, history."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from html import unescape

import httpx
import pytest

from admin_panel.pages.channel import (
    HISTORY_PAGE_SIZE,
    HISTORY_READ,
    MAP_READ,
    PRESENCE_PAGE_SIZE,
    PRESENCE_READ,
    is_too_much,
)
from tests.conftest import CONFIG
from tests.live.channel_page import OFFSET, data_in, section, shown, summary, users_in
from tests.live.panel_servers import PanelServer
from tests.live.panel_site import OPERATOR, PASSWORD, Guests, sign_in
from tests.live.publish_page import field, send
from tests.panel.paths import page_path


@pytest.fixture(scope="module")
def operator(panel_server: PanelServer) -> Iterator[httpx.Client]:
    """The operator's browser, without JavaScript."""
    browser = sign_in(panel_server.address, PASSWORD)
    yield browser
    browser.close()


@pytest.fixture
async def guests(panel_server: PanelServer) -> AsyncIterator[Guests]:
    """Clients of this test at that server."""
    async with AsyncExitStack() as stack:
        yield Guests(panel_server.socket, CONFIG, stack)


# who is there


async def test_subscribers_clients_and_users_are_counted(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    channel = f"demo:{unique}"
    for user in ("17", "17", "18"):
        await guests.open(user, channel)
    found = summary(shown(operator, channel))
    assert found == {"Subscribers": 3, "Clients present": 3, "Users present": 2, "Kept": 0}


async def test_presence_shows_client_user_and_info(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    channel = f"demo:{unique}"
    user = "<img src=x>\"'../a?b#c&d=%2e\u05e9"
    known = await guests.open(user, channel, info={"name": "Ada"})
    anonymous = await guests.open("", channel)
    html = section(shown(operator, channel), "clients")
    assert users_in(html) == ["anonymous", user]
    assert f'href="{page_path("user", user=user)}"' in html
    assert "<img" not in html
    assert html.index(anonymous.client) < html.index(known.client)
    assert data_in(html) == ['{"name": "Ada"}']


async def test_presence_is_paged(operator: httpx.Client, guests: Guests, unique: str) -> None:
    channel = f"demo:{unique}"
    users = [f"user-{number:02}" for number in range(PRESENCE_PAGE_SIZE + 1)]
    for user in users:
        await guests.open(user, channel)

    first = shown(operator, channel)
    second = shown(operator, channel, clients=2)

    assert users_in(section(first, "clients")) == users[:PRESENCE_PAGE_SIZE]
    assert users_in(section(second, "clients")) == users[PRESENCE_PAGE_SIZE:]
    link = page_path("channel", channel=channel, clients=2) + "#channel-clients"
    assert f'href="{link}"' in unescape(section(first, "clients"))


CROWDS = [
    (PRESENCE_READ, None, False),
    (PRESENCE_READ + 1, None, True),
    (PRESENCE_READ + 1, "1", False),
]
"""Subscribers, the page that was asked for, and whether presence is left unread."""


@pytest.mark.parametrize(("subscribers", "asked", "unread"), CROWDS)
def test_presence_of_very_many_is_read_only_when_asked_for(
    subscribers: int, asked: str | None, unread: bool
) -> None:
    assert is_too_much(subscribers, asked) is unread


# what is kept


def test_history_is_shown_newest_first_with_offset_and_uid(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    panel_server.publish(channel, {"n": 1}, {"n": 2})
    history = panel_server.api("history", channel=channel)
    uids = [publication["uid"] for publication in history["publications"]]
    html = section(shown(operator, channel), "history")
    assert OFFSET.findall(html) == ["2", "1"]
    assert data_in(html) == ['{"n": 2}', '{"n": 1}']
    assert 0 < html.index(uids[1]) < html.index(uids[0])


def test_history_is_paged(panel_server: PanelServer, operator: httpx.Client, unique: str) -> None:
    channel = f"demo:{unique}"
    panel_server.publish(channel, *range(HISTORY_PAGE_SIZE + 2))

    html = shown(operator, channel)
    second = section(shown(operator, channel, kept=2), "history")

    assert summary(html)["Kept"] == HISTORY_PAGE_SIZE + 2
    assert len(OFFSET.findall(section(html, "history"))) == HISTORY_PAGE_SIZE
    assert OFFSET.findall(second) == ["2", "1"]
    link = page_path("channel", channel=channel, kept=2) + "#channel-history"
    assert f'href="{link}"' in unescape(html)


def test_history_that_is_very_long_is_cut_and_says_so(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"long:{unique}"
    panel_server.publish(channel, *range(HISTORY_READ + 1))

    html = shown(operator, channel)
    last = section(shown(operator, channel, kept=99999), "history")

    assert summary(html)["Kept"] == HISTORY_READ
    note = f"The list is incomplete: it shows the newest {HISTORY_READ:,}."
    assert note in section(html, "history")
    assert OFFSET.findall(section(html, "history"))[0] == str(HISTORY_READ + 1)
    assert OFFSET.findall(last)[-1] == "2", "the oldest one is not among the newest"


async def test_publication_of_a_client_names_it(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique, f"demo:{unique}")
    await client.result("publish", {"channel": f"demo:{unique}", "data": 1})
    html = section(shown(operator, f"demo:{unique}"), "history")
    assert f">{unique}<" in html
    assert client.client in html


def test_long_payload_is_folded_and_a_huge_one_is_there_as_a_whole(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    rows, huge = [{"id": number} for number in range(50)], "x" * 50_000
    panel_server.publish(channel, rows, huge)

    html = section(shown(operator, channel), "history")

    assert html.count("<details") == 2
    assert data_in(html)[1] == json.dumps(rows, indent=2)
    assert len(html) < 40_000
    [link] = re.findall(r'href="([^"]*/data/[^"]*)"', html)
    response = operator.get(unescape(link))
    assert response.json() == huge
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("offset", ["7", "0", "-1", "x", "", "9" * 30, "9" * 5000])
def test_data_of_a_publication_that_is_gone_are_not_there(
    panel_server: PanelServer, operator: httpx.Client, unique: str, offset: str
) -> None:
    channel = f"demo:{unique}"
    panel_server.publish(channel, 1)
    path = page_path("channel") + "data/"
    response = operator.get(path, params={"channel": channel, "offset": offset})
    assert response.history[0].status_code == 302
    assert "The history no longer has this publication." in response.text


# faces


def test_channel_that_nobody_uses_is_explained(operator: httpx.Client, unique: str) -> None:
    html = shown(operator, f"demo:{unique}")
    assert "This channel has no subscribers and no history." in html
    assert "The history is empty at the moment." in html
    assert "No client is subscribed at the moment." in html


def test_channel_without_presence_and_history_says_so(operator: httpx.Client, unique: str) -> None:
    html = shown(operator, unique)
    assert "This channel keeps no history." in section(html, "history")
    assert "Presence is off in this channel" in section(html, "clients")
    assert summary(html) == {"Subscribers": 0}
    assert "so there may be gaps" in section(html, "tail")


def test_options_in_force_are_there_in_a_word_each(operator: httpx.Client, unique: str) -> None:
    """The options of the namespace demo, as the settings of the ready site set them."""
    words = shown(operator, f"demo:{unique}").partition('class="panel-words"')[2]

    assert re.findall(r"<li[^>]*>([^<]*)</li>", words.partition("</ul>")[0]) == [
        "history of 100 for 5 minutes",
        "recovery",
        "presence",
        "joins and leaves",
        "clients publish",
        "only subscribers publish",
    ]


NO_CHANNELS = [
    ("nope:{}", "Unknown namespace", "Error 102: namespace not found"),
    ("gr\u00fc\u00dfe {}", "Invalid channel name", "Error 107: bad request"),
]


@pytest.mark.parametrize(("name", "title", "error"), NO_CHANNELS, ids=["102", "107"])
def test_name_that_no_channel_can_have_is_explained(
    operator: httpx.Client, unique: str, name: str, title: str, error: str
) -> None:
    response = operator.get(page_path("channel", channel=name.format(unique)))
    assert response.status_code == 404
    assert title in response.text
    assert error in response.text
    assert "channel.js" not in response.text


def test_page_without_a_channel_asks_for_one(operator: httpx.Client) -> None:
    response = operator.get(page_path("channel"))
    assert response.status_code == 200
    assert "Enter the name of a channel" in response.text
    assert re.search(r'<input [^>]*name="channel" value=""', response.text)


NAMES = ["<script>alert(1)</script>", "\"'><img src=x>", "../../x", "a?b#c&d=%2e", " two  spaces "]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_name_is_shown_as_text_and_kept_in_links(
    operator: httpx.Client, unique: str, name: str
) -> None:
    channel = f"demo:{unique}{name}"
    html = shown(operator, channel)
    assert "<script>" not in html
    assert "<img src=x" not in html
    assert f'<h2 class="panel-subject"><bdi class="panel-name">{channel}</bdi>' in unescape(html)
    [link] = re.findall(r'id="channel-refresh" href="([^"]*)"', html)
    assert httpx.URL(unescape(link)).params["channel"] == channel


# who published, and again


def test_history_names_the_publisher_and_what_it_keeps_can_be_published_again(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    panel_server.server.api("publish", channel=channel, data={"n": 1})
    send(operator, channel, '{"n":  1.50}', tags="league=first")

    html = section(shown(operator, channel), "history")

    newest, oldest = re.split('<li class="panel-entry">', html)[1:]
    assert f'<bdi class="panel-name">{OPERATOR}</bdi>' in newest
    assert ">server</span>" in oldest
    links = re.findall(r'<a href="([^"]*)"[^>]*>Publish again<', html)
    forms = [operator.get(unescape(link)).text for link in links]
    assert [field(form, "channel") for form in forms] == [channel, channel]
    assert field(forms[0], "data") == '{"n":  1.50}'
    assert json.loads(field(forms[1], "data")) == {"n": 1}
    assert [field(form, "tags") for form in forms] == ["league=first", ""]
    gone = operator.get(unescape(links[0]).replace("offset=2", "offset=9"))
    assert "no longer has this publication" in gone.text


# maps


def test_map_shows_its_keys_and_the_history_its_changes(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"seats:{unique}"
    assert "The map is empty" in section(shown(operator, channel), "map-title")
    for number in range(MAP_READ + 2):
        panel_server.change(channel, f"<seat>{number:03}", data={"n": number})
    panel_server.change(channel, "<seat>000")

    html = shown(operator, channel)

    entries = section(html, "map-title")
    assert f"{MAP_READ + 1} keys." in entries
    assert f"the first {MAP_READ}." in entries
    assert data_in(entries) == [f'{{"n": {number}}}' for number in range(1, MAP_READ + 1)]
    assert "&lt;seat&gt;001" in entries
    newest = section(html, "history").partition("</li>")[0]
    assert "&lt;seat&gt;000" in newest
    assert "removed" in newest
    assert "channel-publish" not in html
    answer = send(operator, channel).text
    assert "It is a map, and the panel changes no keys." in unescape(answer)
