"""The panel's page of a user in a served site: the connections, disconnect and unsubscribe."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import httpx
import pytest

from admin_panel.pages.user import CHANNELS_PAGE_SIZE, CONNECTIONS_PAGE_SIZE, SHOWN
from realtime.cluster.survey import MAX_ANSWER_BYTES, MAX_CHANNELS
from tests.live.configurations import FORCED
from tests.live.panel_site import Guests
from tests.live.panel_staff import Staff, logged, post
from tests.live.user_page import page, part, words
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

CLIENT = re.compile(r'<th scope="row"><code>([-0-9a-f]{36})</code></th>')


def listed_channels(html: str) -> list[str]:
    names = re.findall(r'<bdi class="panel-name">(.*?)</bdi></a></th>', part(html, "user-channels"))
    return [unescape(name) for name in names]


# what is shown


async def test_connections_are_listed_with_their_channels_and_info(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    first = await guests.open(unique, f"{unique}-a", info={"name": "Ada <3"})
    second = await guests.open(unique, f"{unique}-a", f"{unique}-b")
    await guests.open(f"{unique}-other", f"{unique}-c")

    html = page(operator, unique)

    connections = part(html, "user-connections")
    assert CLIENT.findall(connections) == [first.client, second.client]
    assert '{"name": "Ada <3"}' in unescape(connections)
    assert connections.count(">websocket<") == 2
    assert "127.0.0.1" in connections
    assert "protocol 1 json" in words(connections)
    assert re.search(r"\d seconds?<", connections)
    assert listed_channels(html) == [f"{unique}-a", f"{unique}-b"]
    assert f"{unique}-c" not in html


async def test_empty_user_id_is_explained_and_lists_no_user(
    operator: httpx.Client, guests: Guests
) -> None:
    client = await guests.open("")
    html = page(operator, "")
    assert "Anonymous users have no ID" in html
    assert client.client not in html


def test_page_without_a_user_has_a_field_to_name_one(operator: httpx.Client) -> None:
    html = operator.get(page_path("user")).text
    assert 'name="user"' in html
    assert "Anonymous users" not in html


async def test_any_user_id_is_shown_as_text_and_linked_whole(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    user = f'{unique}<script>alert(1)</script>"><img src=x>../?a=b&c=d#e%00משתמש\N{GRINNING FACE}'
    user += "u" * (255 - len(user))
    client = await guests.open(user, f"{unique}<i>&x=1")

    html = page(operator, user)

    assert user in unescape(html.partition("<h2")[2].partition("</h2>")[0])
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert f"{unique}<i>" not in html
    [link] = re.findall(r'id="user-disconnect" href="([^"]*)"', html)
    question = operator.get(unescape(link)).text
    assert "1 connection will be closed." in question
    [target] = re.findall(r'<form method="post" action="([^"]*disconnect[^"]*)"', question)
    await asyncio.to_thread(post, operator, unescape(target))  # so that the client answers
    assert await client.closed() == FORCED


async def test_info_is_shown_as_it_was_given(
    operator: httpx.Client, site: ReadySite, guests: Guests, unique: str
) -> None:
    await guests.open(unique, info={"n": 12345678901234567890123, "t": "\\u003c & <"})
    shown = unescape(part(page(operator, unique), "user-connections"))
    assert '"n": 12345678901234567890123' in shown
    assert r'"t": "\\u003c & <"' in shown


# much of it


async def test_connections_are_paged(operator: httpx.Client, guests: Guests, unique: str) -> None:
    opened = [(await guests.open(unique)).client for _ in range(CONNECTIONS_PAGE_SIZE + 3)]
    first, second = page(operator, unique), page(operator, unique, page=2)
    assert CLIENT.findall(first) + CLIENT.findall(second) == opened
    assert len(CLIENT.findall(second)) == 3
    assert f'href="{page_path("user", user=unique, page=2)}#user-connections"' in unescape(first)


async def test_many_channels_are_folded_and_a_cut_list_says_so(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-{number:05}" for number in range(MAX_CHANNELS + 10)]
    await guests.open(unique, *names)

    html = page(operator, unique)

    assert "The list of channels is incomplete" in html
    connections = part(html, "user-connections")
    assert f"<summary>{len(names):,} channels</summary>" in connections
    assert connections.count("<li><a") == SHOWN
    assert f"and {len(names) - SHOWN:,} more" in connections
    assert listed_channels(html) == names[:CHANNELS_PAGE_SIZE]
    assert listed_channels(page(operator, unique, channels=2))[0] == names[CHANNELS_PAGE_SIZE]
    assert "Unsubscribe from another channel" in html


async def test_list_of_connections_that_is_cut_says_so(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    info = "x" * 40_000
    number = MAX_ANSWER_BYTES // len(info) + 2
    for _ in range(number):
        await guests.open(unique, info=info)
    html = page(operator, unique)
    assert re.search(rf"The list is incomplete: it shows \d+ of {number} connections\.", html)
    assert "Actions reach all of them." in html


# what can be done


async def test_disconnect_closes_a_live_client_and_the_page_shows_it_gone(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    closed = [await guests.open(unique), await guests.open(unique)]
    other = await guests.open(f"{unique}-other")

    path = page_path("user/disconnect", user=unique)
    question = operator.get(path).text
    assert "Disconnect this user?" in question
    assert "2 connections will be closed." in question
    await closed[0].quiet()
    # in a thread, so that the clients answer meanwhile
    response = await asyncio.to_thread(post, operator, path)

    assert [await client.closed() for client in closed] == [FORCED, FORCED]
    await other.quiet()
    assert response.history[0].status_code == 302
    assert f"All connections of {unique} are being closed." in response.text
    assert "This user is not connected at the moment." in response.text
    assert 'id="user-disconnect"' not in response.text
    assert logged(site, unique) == [("operator", "connection", unique, "Disconnected")]


async def test_unsubscribe_from_one_channel_leaves_the_others(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    left, kept = f"{unique}-left", f"{unique}-kept"
    client = await guests.open(unique, left, kept)
    response = post(operator, page_path("user/unsubscribe", user=unique, channel=left))
    assert (await client.push())["channel"] == left
    assert f"All connections of {unique} were unsubscribed from {left}." in response.text
    assert listed_channels(response.text) == [kept]
    assert logged(site, unique) == [("operator", "connection", unique, f"Unsubscribed: {left}")]


async def test_unsubscribe_from_all_channels_leaves_none(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique, f"{unique}-a", f"{unique}-b")
    response = post(operator, page_path("user/unsubscribe", user=unique, all=1))
    assert {(await client.push())["channel"] for _ in range(2)} == {f"{unique}-a", f"{unique}-b"}
    assert "None of the connections is subscribed to a channel." in response.text
    assert logged(site, unique) == [("operator", "connection", unique, "Unsubscribed")]


async def test_unsubscribe_without_a_channel_does_nothing(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique, unique)
    response = post(operator, page_path("user/unsubscribe", user=unique, channel=""))
    assert "Nothing was done: no channel was given." in response.text
    await client.quiet()
    assert logged(site, unique) == []


def test_unsubscribe_from_a_channel_of_no_namespace_says_why_not(
    site: ReadySite, operator: httpx.Client, unique: str
) -> None:
    response = post(operator, page_path("user/unsubscribe", user=unique, channel="nope:a"))
    assert "Nothing was done. Error 102: namespace not found." in response.text
    assert logged(site, unique) == []


@pytest.mark.parametrize("action", ["disconnect", "unsubscribe"])
def test_action_on_the_anonymous_user_leads_to_the_explanation(
    operator: httpx.Client, action: str
) -> None:
    response = post(operator, page_path(f"user/{action}", user="", all=1))
    assert "Anonymous users have no ID" in response.text


# who may


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("viewer", set()),
        ("disconnecter", {"user-disconnect"}),
        ("unsubscriber", {"user-unsubscribe-all", ">Unsubscribe<"}),
    ],
)
async def test_buttons_are_those_the_operator_may_use(
    staff: Staff, guests: Guests, unique: str, name: str, shown: set[str]
) -> None:
    await guests.open(unique, unique)
    html = page(staff[name], unique)
    buttons = {"user-disconnect", "user-unsubscribe-all", ">Unsubscribe<"}
    assert {button for button in buttons if button in html} == shown
