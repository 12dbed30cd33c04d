"""The publish page without JavaScript: what it reaches, who may what, what was published before."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.live.panel_site import Guests
from tests.live.panel_staff import Staff, post
from tests.live.publish_page import (
    PAGE,
    assert_nothing_came,
    field,
    published,
    reach,
    send,
)
from tests.ready_site import ReadySite


@pytest.fixture
def for_demo(staff: Staff) -> httpx.Client:
    """The browser of someone who may publish into the namespace demo only."""
    return staff["for-demo"]


# what it reaches


async def test_button_shows_what_it_would_reach_and_publishes_nothing(
    staffed_site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", f"demo:{unique}", unique)
    await guests.open("17", f"demo:{unique}")

    html = send(operator, f"demo:{unique} {unique} {unique}-none nope-x:a", "{", check="1").text

    shown = reach(html)
    assert "<strong>4</strong> channels, <strong>3</strong> subscribers" in shown
    assert "<strong>1</strong> refused" in shown
    cells = [
        re.findall(r"<(?:td|th)[^>]*>(.*?)</(?:td|th)>", row) for row in shown.split("<tr")[2:]
    ]
    texts = [[re.sub("<[^>]*>", "", cell).strip() for cell in row] for row in cells]
    assert texts == [
        [f"demo:{unique}", "2", "in use", "the last 100, for 5 minutes"],
        [unique, "1", "in use", "off"],
        [f"{unique}-none", "0", "no subscribers", "off"],
        ["nope-x:a", "\N{EN DASH}", "Error 102: namespace not found.", "\N{EN DASH}"],
    ]
    assert field(html, "data") == "{"
    await assert_nothing_came(staffed_site, client, unique)


HOSTILE = "<script>alert(1)</script>'\"&?../%2e"


def test_form_is_filled_with_the_channels_of_the_address_whole(
    operator: httpx.Client, unique: str
) -> None:
    html = operator.get(PAGE, params={"channel": [unique + HOSTILE, f"{unique} b\nc"]}).text
    assert field(html, "channel") == f'{unique}{HOSTILE}\n"{unique} b\\nc"'


# permissions


def test_page_names_the_namespaces_that_are_allowed(
    operator: httpx.Client, for_demo: httpx.Client
) -> None:
    assert "<code>demo:</code>" in for_demo.get(PAGE).text
    assert 'id="namespaces"' not in operator.get(PAGE).text


async def test_permission_for_a_namespace_publishes_there(
    for_demo: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", f"demo:{unique}")
    send(for_demo, f"demo:{unique}", '"hi"')
    assert await published(client) == "hi"


async def test_channel_that_is_not_allowed_is_not_counted_for_its_visitor(
    for_demo: httpx.Client, guests: Guests, unique: str
) -> None:
    await guests.open("17", unique)
    shown = reach(send(for_demo, unique, check="1").text)
    assert "<strong>0</strong> subscribers" in shown
    assert "You may not publish into this channel." in shown


async def test_only_channels_that_are_allowed_are_suggested(
    operator: httpx.Client, for_demo: httpx.Client, guests: Guests, unique: str
) -> None:
    await guests.open("17", f"demo:{unique}", f"{unique}-other")
    path = PAGE + "channels/"
    answers = [b.get(path, params={"q": unique}).json() for b in (operator, for_demo)]
    assert answers[0] == {"channels": [f"demo:{unique}", f"{unique}-other"]}
    assert answers[1] == {"channels": [f"demo:{unique}"]}


# for the page's script


def test_script_is_told_what_is_reached_and_whether_to_ask(
    operator: httpx.Client, unique: str
) -> None:
    names = " ".join(f"{unique}-{n}" for n in range(11))
    answer = post(operator, PAGE + "reach/", channel=names).json()
    assert answer["confirm"] is True
    assert f"{unique}-10" in answer["html"]
    assert post(operator, PAGE + "reach/", channel=unique).json()["confirm"] is False


def test_script_is_not_told_to_ask_where_nothing_will_be_sent(
    operator: httpx.Client, unique: str
) -> None:
    names = " ".join(f"nope-namespace:{unique}-{n}" for n in range(11))
    assert post(operator, PAGE + "reach/", channel=names).json()["confirm"] is False


@pytest.mark.parametrize("name", ["", "a b", "a&b=c", "<b>", "x" * 65])
def test_name_of_a_draft_that_is_none_goes_nowhere(
    operator: httpx.Client, unique: str, name: str
) -> None:
    response = send(operator, unique, draft=name)
    assert "Published into" in response.text
    assert "sent" not in response.url.params
