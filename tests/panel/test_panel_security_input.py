"""What is typed into the panel, or stands in its addresses, may be anything: huge, deep, hostile.

No client is served in this process; pages say so, and keep what was typed.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from admin_panel.json_text import LONGEST
from admin_panel.pages.channels import find
from admin_panel.pages.user import info_text
from admin_panel.people import find_people
from tests.panel.urls import NAMES, WITHOUT_SERVICE, url
from tests.panel.urls import signed_in as sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured")]


# what is huge or broken


HALVES = {
    "alone": r'"\ud800"',
    "with others": r'demo:a "\udfff" demo:b',
    "inside": r'"demo:\ud83dx" demo:a',
}
"""Names with half of a surrogate pair, which is no character and cannot be sent."""


@pytest.mark.parametrize("case", HALVES)
@pytest.mark.parametrize("button", ["publish", "check", "confirmed"])
def test_name_with_half_of_a_character_is_refused_and_kept(
    home: str, case: str, button: str
) -> None:
    client = sign_in(superuser=True)

    fields = {"channel": HALVES[case], "data": "1", button: "x"}
    page = client.post(url(home, "publish"), fields)
    part = client.post(url(home, "publish_reach"), {"channel": HALVES[case]})

    for text in (page.content.decode(), part.json()["html"]):
        assert "half of a character" in text
    area = page.content.decode().partition('<textarea name="channel"')[2].partition("</textarea")[0]
    assert HALVES[case].replace('"', "&quot;") in area
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("method", ["publish", "broadcast", "unsubscribe", "disconnect"])
@pytest.mark.parametrize("name", ["console", "console_run"])
def test_half_of_a_character_in_a_command_is_no_crash(home: str, name: str, method: str) -> None:
    half = r'{"channel": "\ud800", "channels": ["\ud800", "a"], "user": "\ud800", "data": "\ud800"}'
    client = sign_in(superuser=True)
    response = client.post(url(home, name), {"method": method, "params": half})
    # 503 as anything that this process cannot serve; the name of one channel is refused before
    refused = {"console": 302, "console_run": 200}[name]
    assert response.status_code == (refused if method == "publish" else 503)
    assert not LogEntry.objects.exists()


DEPTHS = [500, 900, 1000, 5000, 100_000]


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_json_is_an_error_and_no_crash(home: str, depth: int) -> None:
    client = sign_in(superuser=True)
    deep = "[" * depth + "]" * depth
    params = f'{{"channel": "demo:a", "data": {deep}}}'

    answers = [
        client.post(url(home, "publish"), {"channel": "demo:a", "data": deep}),
        client.post(url(home, "console"), {"method": "publish", "params": params}),
        client.post(url(home, "console_run"), {"method": "publish", "params": params}),
        client.post(url(home, "console_run"), {"method": "history", "params": deep}),
    ]

    assert {answer.status_code for answer in answers} <= {200, 503}
    assert deep.encode() in answers[0].content, "the form loses what was typed"
    assert not LogEntry.objects.exists()


def test_info_nested_deeper_than_can_be_read_here_is_shown_all_the_same() -> None:
    # the event loop reads infos with a call stack less deep than that of a page
    deep = "[" * 5000 + "]" * 5000
    found = info_text(deep)
    assert (found.text, found.is_cut) == (deep, False)
    assert len(deep) < LONGEST


TOO_LARGE = {
    "many fields": {f"field{number}": "1" for number in range(1100)},
    "much data": {"channel": "demo:a", "data": '"' + "x" * 2_700_000 + '"', "params": "{}"},
}
READS_FORMS = ("publish", "publish_reach", "console", "console_run", "why", "user_block", "frames")


@pytest.mark.parametrize("case", TOO_LARGE)
def test_form_that_is_too_large_is_refused_where_one_is_read(home: str, case: str) -> None:
    client = sign_in(superuser=True)

    statuses = {name: client.post(url(home, name), TOO_LARGE[case]).status_code for name in NAMES}

    # the others do what they can without the service: they say that nothing is parked, or fail
    tried = {
        "user_unsubscribe": 503,
        "user_close": 503,
        "user_unblock": 503,
        "frames_stop": 302,
        "pending_retry": 302,
        "pending_drop": 302,
    }
    assert statuses == WITHOUT_SERVICE | tried | dict.fromkeys(READS_FORMS, 400)
    assert not LogEntry.objects.exists()


def test_thousands_of_channels_are_refused_without_asking_anybody(home: str) -> None:
    client = sign_in(superuser=True)
    names = " ".join(f"demo:{number}" for number in range(5000))
    page = client.post(url(home, "publish"), {"channel": names, "data": "1", "confirmed": "x"})
    part = client.post(url(home, "publish_reach"), {"channel": names})
    assert "5000 channels are too many" in page.content.decode()
    assert "5000 channels are too many" in part.json()["html"]
    assert "demo:4999" in page.content.decode(), "the form loses what was typed"


NUMBERS = {
    **dict.fromkeys(["-1", "0", "9" * 30, "\u0661"], True),
    **dict.fromkeys(["x", "9" * 5000, "1e3", "1.0", "inf", "", "1\0"], False),
}
"""Text → whether it can be read as an integer."""
READ_NUMBERS = ("channels", "channel", "channel_publishers", "channel_data", "user", "publish")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: ascii(number)[:12])
def test_number_in_an_address_may_be_anything(number: str) -> None:
    client = sign_in(superuser=True)
    words = ("page", "offset", "offsets", "kept", "clients", "channels", "use")
    fields = dict.fromkeys(words, number)
    expected = {name: WITHOUT_SERVICE[name] for name in READ_NUMBERS}
    if not NUMBERS[number]:
        expected["channel_data"] = 302
    for name, status in expected.items():
        assert (name, client.get(url("standalone", name, **fields)).status_code) == (name, status)


@pytest.mark.parametrize("character", ["a", "_", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_users_are_not_looked_for_by_a_text_longer_than_any_name(character: str) -> None:
    sign_in()  # a database compares nothing where there is no user
    assert find_people(character * 60_000, 50) == ([], False)


PATTERNS = [
    "[z-a]",
    "[",
    "[!]",
    "[]]",
    "[a-\\]",
    "*" * 2000,
    "(?i)(",
    "\\",
    "[a&&b]",
    "\0",
    "?" * 99,
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: ascii(pattern)[:12])
@pytest.mark.parametrize("name", ["channels", "publish_channels", "overview_find"])
def test_search_may_be_anything(name: str, pattern: str) -> None:
    response = sign_in(superuser=True).get(url("standalone", name, q=pattern))
    assert response.status_code == WITHOUT_SERVICE[name]
    assert find(["demo:a", "[", "\\"], pattern) is not None


# what is hostile


class Foreign(HTMLParser):
    """Finds markup that no template of ours holds."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def of(cls, text: str) -> list[str]:
        """What there is of it in a page, or a piece of one."""
        parser = cls()
        parser.feed(text)
        return parser.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("img", "iframe", "object", "embed", "base", "style", "marquee"):
            self.found.append(tag)
        if tag == "script" and not (values.get("src") or "").startswith("/static/"):
            # Django's admin writes no script either, but JSON
            self.found.append(tag)
        for name, value in attrs:
            outside = name in ("href", "src", "action") and not re.match("[/?#]", value or "/")
            if name.startswith("on") or name == "style" or outside:
                self.found.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag


def html_of(response: Any) -> str:
    """What of an answer is shown as HTML: scripts show all else of one in JSON as text."""
    if response["Content-Type"] == "application/json":
        html: str = json.loads(response.content).get("html", "")
        return html
    content: bytes = response.content
    return content.decode()


EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7|add:7 }}{% url %}`${x}`"


def test_nothing_of_a_request_is_markup_in_its_answer(home: str) -> None:
    client = sign_in(superuser=True)
    words = ("channel", "user", "q", "method", "offset", "page", "kept", "clients", "use", "sent")
    query = dict.fromkeys(words, EVIL)
    names = ("channel", "data", "method", "params", "draft")
    forms = [
        *((name, "publish") for name in NAMES),
        *(("publish", button) for button in ("check", "edit", "confirmed")),
    ]

    for name, button in forms:
        read = client.get(url(home, name, **query))
        sent = client.post(url(home, name, **query), dict.fromkeys((*names, button), EVIL))

        assert (name, Foreign.of(html_of(read)), Foreign.of(html_of(sent))) == (name, [], [])
