"""The panel's list of channels in a served site: what it finds, counts, pages and cuts."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from admin_panel.pages.channels import LISTED, PAGE_SIZE, find
from tests.live.panel_site import Guests
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

ROW = re.compile(
    r'<th scope="row"><a href="([^"]*)"><bdi[^>]*>(.*?)</bdi></a></th>'
    r'.*?<td class="panel-number"[^>]*>([\d,]+)</td>',
    re.DOTALL,
)
PER_CONNECTION = 2000
"""Channels in one token; more would not fit a frame."""


def listed(browser: httpx.Client, **query: object) -> str:
    """The page as HTML."""
    response = browser.get(page_path("channels", **query))
    assert response.status_code == 200
    return response.text


def rows(html: str) -> dict[str, int]:
    """Channel → subscribers, as the page lists them."""
    return {unescape(name): int(count.replace(",", "")) for _, name, count in ROW.findall(html)}


async def test_channel_is_listed_with_its_subscribers(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    await guests.open("17", f"{unique}-one", f"{unique}-two")
    await guests.open("17", f"{unique}-two")
    assert rows(listed(operator, q=unique)) == {f"{unique}-one": 1, f"{unique}-two": 2}


async def test_channel_leaves_the_list_with_its_last_subscriber(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", unique)
    assert unique in rows(listed(operator, q=unique))
    await client.result("unsubscribe", {"channel": unique})
    html = listed(operator, q=unique)
    assert rows(html) == {}
    assert "No channel with a subscriber matches" in html


async def test_list_is_paged_and_search_goes_along(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-{number:03}" for number in range(PAGE_SIZE + 10)]
    await guests.open("17", *names)
    first = listed(operator, q=unique)
    second = listed(operator, q=unique, page=2)
    assert list(rows(first)) == names[:PAGE_SIZE]
    assert list(rows(second)) == names[PAGE_SIZE:]
    assert f'href="{page_path("channels", q=unique, page=2)}"' in unescape(first)
    assert f"{len(names)} of " in first


@pytest.mark.parametrize("page", ["0", "99999", "x", "-1", ""])
async def test_page_that_does_not_exist_is_one_that_does(
    operator: httpx.Client, guests: Guests, unique: str, page: str
) -> None:
    await guests.open("17", unique)
    assert unique in rows(listed(operator, q=unique, page=page))


async def test_list_that_is_cut_says_so_and_search_finds_the_rest(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-{number:05}" for number in range(LISTED + 5)]
    for start in range(0, len(names), PER_CONNECTION):
        await guests.open("17", *names[start : start + PER_CONNECTION])
    html = listed(operator, q=unique)
    note = f"The list is incomplete: it shows the first {LISTED:,} of {len(names):,} channels."
    assert note in html
    assert list(rows(html)) == names[:PAGE_SIZE]
    assert list(rows(listed(operator, q=names[-1]))) == [names[-1]]


HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&b=c?d/../%2e#", "'"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_name_is_shown_as_text_and_linked_whole(
    operator: httpx.Client, guests: Guests, unique: str, name: str
) -> None:
    name = unique + name.replace("#", "")  # a "#" would make it the channel of a user
    await guests.open("17", name)

    html = listed(operator, q=unique)

    assert rows(html) == {name: 1}
    assert name not in html, "it is there unescaped"
    [(link, _, _)] = ROW.findall(html)
    page = operator.get(unescape(link))
    assert page.status_code == 200
    assert name in unescape(page.text.partition("<h2")[2].partition("</h2>")[0])


FOUND = [
    ("", ["$chat:Room", "chat:room", "chat:rooms", "news"]),
    ("room", ["$chat:Room", "chat:room", "chat:rooms"]),
    ("ROOM", ["$chat:Room", "chat:room", "chat:rooms"]),
    ("chat:*", ["chat:room", "chat:rooms"]),
    ("*room", ["$chat:Room", "chat:room"]),
    ("chat:room?", ["chat:rooms"]),
    ("[$n]*", ["$chat:Room", "news"]),
    ("[", []),
    (".", []),
    ("nothing", []),
]


@pytest.mark.parametrize(("search", "found"), FOUND, ids=[search or "all" for search, _ in FOUND])
def test_search_is_for_a_part_of_the_name_or_a_pattern(search: str, found: list[str]) -> None:
    assert find(["$chat:Room", "chat:room", "chat:rooms", "news"], search) == found


def test_pattern_of_many_stars_takes_no_time() -> None:
    """A pattern that tried all ways to match would not end within the time limit of a test."""
    assert find(["a" * 255], "*a" * 60 + "b") == []


# the busiest


BUSY = re.compile(
    r"<bdi[^>]*>([^<]*)</bdi></a></th>.*?" + r'<td class="panel-number"[^>]*>([^<]*)</td>\s*' * 3,
    re.DOTALL,
)


def busiest(browser: httpx.Client, **query: object) -> list[tuple[str, ...]]:
    """Channel, subscribers, publications and bytes a minute, as the page lists them."""
    return [tuple(map(unescape, row)) for row in BUSY.findall(listed(browser, **query))]


async def test_busiest_channels_are_sorted_by_what_is_asked_for(
    staffed_site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    calm, busy, large = (f"{unique}-{name}" for name in ("calm", "busy", "large"))
    client = await guests.open("17", calm, busy, large)
    await guests.open("18", calm)
    first = busiest(operator, q=unique, sort="publications")
    assert {row[2] for row in first} <= {"\N{EN DASH}", "0"}
    staffed_site.publish(busy, 1, 2, 3)
    staffed_site.publish(large, "x" * 1000)
    for _ in range(4):
        await client.publication()

    def names(sort: str) -> list[str]:
        return [name for name, *_ in busiest(operator, q=unique, sort=sort)]

    assert names("publications") == [busy, large, calm]
    assert names("bytes") == [large, busy, calm]
    assert names("subscribers")[0] == calm
    [(_, subscribers, publications, size)] = busiest(operator, q=busy, sort="bytes")
    assert subscribers == "1"
    assert float(publications.replace(",", "")) > 0
    assert float(size.replace(",", "")) > 0


@pytest.mark.parametrize("sort", ["", "subscribers"])
async def test_list_is_filtered_by_namespace(
    operator: httpx.Client, guests: Guests, unique: str, sort: str
) -> None:
    await guests.open("17", f"demo:{unique}", unique)

    def names(namespace: str) -> set[str]:
        html = listed(operator, q=f"*{unique}", sort=sort, namespace=namespace)
        return set(re.findall(r"<bdi[^>]*>([^<]*)</bdi></a></th>", html))

    assert names("demo") == {f"demo:{unique}"}
    assert names("(none)") == {unique}
    assert names("") == names("unknown") == {f"demo:{unique}", unique}
