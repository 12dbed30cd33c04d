"""What can be done from the panel's channel page: remove history, publish, watch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from admin_panel.pages.channel import TOKEN_TTL
from tests.live.channel_page import shown
from tests.live.panel_servers import VIEWER, PanelServer
from tests.live.panel_site import PASSWORD, sign_in
from tests.panel.paths import page_path
from tests.protocol_client import open_client


@pytest.fixture(scope="module")
def operator(panel_server: PanelServer) -> Iterator[httpx.Client]:
    """The operator's browser, without JavaScript."""
    browser = sign_in(panel_server.address, PASSWORD)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def viewer(panel_server: PanelServer) -> Iterator[httpx.Client]:
    """The browser of someone who may only look."""
    browser = sign_in(panel_server.address, PASSWORD, VIEWER)
    yield browser
    browser.close()


# removing history


def remove_path(channel: str) -> str:
    return f"{page_path('channel')}remove/?{httpx.QueryParams(channel=channel)}"


def removal(browser: httpx.Client, channel: str) -> httpx.Response:
    """Confirm, as the form of the confirm page would."""
    fields = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    return browser.post(remove_path(channel), data=fields)


def kept(server: PanelServer, channel: str) -> list[Any]:
    """The data that the channel keeps, oldest first."""
    history = server.api("history", channel=channel)
    return [publication["data"] for publication in history["publications"]]


def test_history_is_removed_after_a_question_and_that_is_logged(
    panel_server: PanelServer, operator: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    panel_server.publish(channel, 1, 2)
    assert f'href="{remove_path(channel)}"' in unescape(shown(operator, channel))

    question = operator.get(remove_path(channel)).text
    assert "2 publications will be removed." in question
    assert kept(panel_server, channel) == [1, 2], "removed before it was confirmed"
    response = removal(operator, channel)

    assert response.history[0].status_code == 302
    assert f"The history of {channel} was removed." in response.text
    panel_server.publish(channel, 3)
    assert kept(panel_server, channel) == [3]
    logged = operator.get("/admin/").text.partition("Recent actions")[2]
    assert channel in logged


def test_viewer_sees_no_link_to_act(
    panel_server: PanelServer, viewer: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    panel_server.publish(channel, 1)
    html = shown(viewer, channel)
    assert "/remove/" not in html
    assert "/publication/" not in html


@pytest.mark.parametrize("channel", ["{}", "nope:{}", "\u00e9{}"], ids=["off", "102", "107"])
def test_removal_where_nothing_can_be_kept_says_so_and_logs_nothing(
    operator: httpx.Client, unique: str, channel: str
) -> None:
    response = removal(operator, channel.format(unique))
    assert "The channel keeps no history." in response.text
    assert unique not in operator.get("/admin/").text


# publishing


def test_publish_link_names_the_channel(operator: httpx.Client, unique: str) -> None:
    channel = f"demo:{unique}&x=?#"
    [link] = re.findall(r'id="channel-publish" href="([^"]*)"', shown(operator, channel))
    assert unescape(link) == page_path("publication", channel=channel)


# the token of the live tail


async def test_token_lets_its_bearer_watch_this_channel_and_nothing_else(
    panel_server: PanelServer, viewer: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    response = viewer.get(page_path("channel") + "token/", params={"channel": channel})
    token = response.json()["token"]

    async with open_client(panel_server.socket, connected=False) as watcher:
        result = await watcher.result("connect", {"token": token})
        panel_server.publish(channel, 1)
        assert (await watcher.push())["channel"] == channel
        assert (await watcher.error("subscribe", {"channel": "demo:lobby"}))["code"] == 103

    assert list(result["subs"]) == [channel]
    assert TOKEN_TTL - 10 < result["ttl"] <= TOKEN_TTL
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize(("channel", "code"), [("nope:a", 102), ("\u00e9", 107), ("", 107)])
def test_there_is_no_token_for_what_is_no_channel(
    viewer: httpx.Client, channel: str, code: int
) -> None:
    response = viewer.get(page_path("channel") + "token/", params={"channel": channel})
    assert response.status_code == 404
    assert response.json()["code"] == code
