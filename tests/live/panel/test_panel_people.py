"""The panel's page of a user in a served site: who is found, what went before, close and block."""

from __future__ import annotations

import asyncio
import json
import re
from html import unescape
from urllib.parse import quote

import httpx
import pytest

from tests.live.configurations import FORCED
from tests.live.panel_site import Guests, token_for
from tests.live.panel_staff import Staff, logged, post
from tests.live.user_page import page, part, words
from tests.panel.paths import page_path
from tests.protocol_client import Closed, open_client
from tests.ready_site import ReadySite

# who is found


async def test_users_are_found_by_the_beginning_of_their_id(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    for user in (f"{unique}-b", f"{unique}-a", f"{unique}-a"):
        await guests.open(user)
    found = words(part(page(operator, unique, search=1), "user-found"))
    assert f"{unique}-a 2 connections {unique}-b 1 connection" in found


def test_users_of_the_site_are_found_by_name_for_those_who_may_see_them(staff: Staff) -> None:
    seen = part(page(staff["operator"], "publish", search=1), "user-found")
    hidden = part(page(staff["viewer"], "publish", search=1), "user-found")
    assert "publisher" in words(seen)
    assert "publisher" not in words(hidden)


def test_null_character_finds_no_user(operator: httpx.Client) -> None:
    assert not part(page(operator, "publish\0", search=1), "user-found")


# what went before


async def test_end_of_the_last_connection_is_told_in_words(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique)
    await asyncio.to_thread(post, operator, page_path("user/disconnect", user=unique))
    assert await client.closed() == FORCED
    past = words(part(page(operator, unique), "user-past"))
    assert "3012 An operator, the site or a logout closed the connection." in past


async def test_refused_command_is_listed_and_explained(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique)
    assert (await client.error("publish", {"channel": unique, "data": {}}))["code"] == 103
    past = part(page(operator, unique), "user-past")
    assert f"publish {unique} 103 The options, a token or the site do not allow it." in words(past)
    [link] = re.findall(r'href="([^"]*/why/[^"]*)"', past)
    why = operator.get(unescape(link)).text
    assert "Clients may not publish into such channels." in why
    assert 'data-outcome="refused" aria-current="true"' in why


# one connection


async def test_one_connection_is_closed_and_the_others_stay(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    closed, stays = await guests.open(unique), await guests.open(unique)
    path = page_path("user/close", user=unique, client=closed.client)

    asked = operator.get(path).text
    await asyncio.to_thread(post, operator, path)

    assert "Close this connection?" in asked
    assert await closed.closed() == FORCED
    await stays.quiet()
    action = f"Disconnected: {closed.client}"
    assert logged(site, unique) == [("operator", "connection", unique, action)]


# block


async def test_blocked_user_is_out_until_it_is_unblocked(
    site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open(unique)
    path = page_path("user/block", user=unique)

    asked = operator.get(path).text
    done = await asyncio.to_thread(post, operator, path, minutes="5")

    assert "1 connection will be closed." in asked
    assert await client.closed() == FORCED
    assert f"Blocked for 5 minutes: {unique}." in done.text
    assert "The user is blocked until" in done.text
    assert unique in part(operator.get(page_path("user")).text, "users-blocked")
    with pytest.raises(Closed):
        async with open_client(site.socket, token=token_for(site, unique)):
            pass
    why = operator.get(page_path("why", user=unique, channel="news")).text
    assert "The user is blocked: connections are closed, and new ones refused." in why

    await asyncio.to_thread(post, operator, page_path("user/unblock", user=unique))

    await guests.open(unique)
    assert [message for *_, message in logged(site, unique)] == ["Blocked: 5 minutes", "Unblocked"]


@pytest.mark.parametrize("minutes", ["", "0", "-1", "1.5", "x", "525601", "٣", "9" * 5000])
def test_other_numbers_of_minutes_block_no_user(
    site: ReadySite, operator: httpx.Client, unique: str, minutes: str
) -> None:
    response = post(operator, page_path("user/block", user=unique), minutes=minutes)
    assert "Nothing was done" in response.text
    assert logged(site, unique) == []


# frames


async def test_frames_of_a_user_are_followed_and_logged(
    site: ReadySite, staff: Staff, guests: Guests, unique: str
) -> None:
    tracer = staff["tracer"]
    client = await guests.open(unique)
    path = page_path("frames", user=unique)

    asked = tracer.get(path).text
    followed = await asyncio.to_thread(post, tracer, path, minutes="1", masked="1")
    await client.error("publish", {"channel": unique, "data": {"word": "of the user"}})
    [url] = re.findall(r'data-url="([^"]*)"', followed.text)
    answer = (await asyncio.to_thread(tracer.get, unescape(url))).json()

    assert "Follow the frames of this user?" in asked
    assert "Payloads are hidden." in followed.text
    kinds = [entry["kind"] for entry in answer["entries"]]
    assert kinds == ["there", "received", "sent"]
    texts = " ".join(entry["text"] for entry in answer["entries"])
    assert unique in texts
    assert "of the user" not in texts
    taken = quote(json.dumps(answer["taken"]))
    rest = (await asyncio.to_thread(tracer.get, f"{unescape(url)}&taken={taken}")).json()
    assert rest["entries"] == []
    [entry] = logged(site, unique)
    assert entry == ("tracer", "connection", unique, "Frames followed: 1 minute, payloads hidden")


@pytest.mark.parametrize("change", ["", "x", ":"], ids=["none", "cut", "other"])
def test_frames_of_another_url_are_not_shown(operator: httpx.Client, change: str) -> None:
    path = page_path("frames/data", user="17", trace=change)
    assert operator.get(path).json() == {"over": True}


def test_frames_that_another_operator_follows_are_not_shown(
    operator: httpx.Client, staff: Staff, unique: str
) -> None:
    followed = post(staff["tracer"], page_path("frames", user=unique), minutes="1")
    [url] = map(unescape, re.findall(r'data-url="([^"]*)"', followed.text))
    page = str(followed.url)
    assert operator.get(url).json() == {"over": True}
    assert "Follow the frames of this user?" in operator.get(page).text
    assert "entries" in staff["tracer"].get(url).json()
