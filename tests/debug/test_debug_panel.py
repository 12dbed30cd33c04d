"""The panel for django-debug-toolbar, with the real toolbar, as its page asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import AsyncClient, Client

import realtime
from realtime.errors import EngineUnavailable
from realtime.serving import serving
from realtime.testing import TestService
from realtime.tracing.recording import recorder
from tests.debug import views

NONE = "\N{EN DASH}"


@pytest.fixture(autouse=True)
def service(settings: Any) -> Iterator[TestService]:
    """The service of a site with the toolbar."""
    settings.DEBUG = True
    settings.INTERNAL_IPS = ["127.0.0.1"]
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, *views.APPS]
    settings.MIDDLEWARE = views.MIDDLEWARE
    settings.ROOT_URLCONF = "tests.debug.urls"
    settings.DEBUG_TOOLBAR_PANELS = views.PANELS
    settings.REALTIME = views.OPTIONS
    with TestService() as started:
        yield started


class Rows(HTMLParser):
    """The rows of the tables of a panel, each as the texts of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1] and self.lasttag not in ("p", "h4"):
            self.rows[-1][-1] += data.strip()


def panel_of(page: Any) -> str:
    """The HTML of the panel of a page; another request asks for it, as the toolbar does."""
    found = re.search(r'data-request-id="(\w+)"', page.content.decode())
    assert found is not None
    asked = {"request_id": found[1], "panel_id": "RealtimePanel"}
    return str(Client().get("/__debug__/render_panel/", asked).json()["content"])


def rows_of(page: Any) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in Rows(panel_of(page)).rows}


def test_publications_are_shown_with_their_position_and_cut_data() -> None:
    page = Client().get("/publishing")

    position = realtime.position("orders:42")
    data, state, cost, place = rows_of(page)["orders:42"]
    assert data.startswith('{"text": "<b>xxx')
    assert data.endswith("x … (424 bytes)")
    assert len(data) == 300 + len(" … (424 bytes)")
    assert (state, place) == ("sent", f"1 of epoch {position.epoch}")
    assert re.fullmatch(r"[\d.]+ ms", cost)
    assert "3 publications" in page.content.decode()


def test_publications_of_one_call_share_its_cost() -> None:
    rows = rows_of(Client().get("/publishing"))

    assert "still deferred" not in Rows(panel_of(Client().get("/publishing"))).text
    assert rows["plain:1"][2] == rows["plain:2"][2]
    assert rows["plain:1"][2].endswith("ms for 2")
    assert rows["plain:1"][3] == NONE


async def test_publications_of_coroutines_are_shown() -> None:
    page = await AsyncClient().get("/apublishing")

    assert "1 publication" in page.content.decode()
    assert recorder.get() is None


@pytest.mark.django_db(transaction=True)
def test_publications_wait_for_the_commit() -> None:
    panel = Rows(panel_of(Client().get("/committing")))

    states = {row[1]: row[2] for row in panel.rows if len(row) == 5}
    assert states['"kept"'] == "sent after the commit"
    assert states['"row"'] == "durable: a row keeps it, a relay sends it"
    assert states['"undone"'] == "deferred until the commit"
    assert "still deferred" in panel.text


def test_publication_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: Any, **__: Any) -> None:
        raise EngineUnavailable("Redis is away")

    monkeypatch.setattr(serving, "call", call)

    rows = rows_of(Client().get("/failing"))

    assert rows["plain:1"][1] == "not sentEngineUnavailable: Redis is away"


def test_positions_of_the_page_are_shown() -> None:
    realtime.publish("orders:42", 1)

    rows = rows_of(Client().get("/positions"))

    assert rows["orders:42"] == [f"1 of epoch {realtime.position('orders:42').epoch}"]


def test_tokens_are_described_and_not_shown() -> None:
    page = Client().get("/tokens")

    html = panel_of(page)
    tokens = [
        row for row in Rows(html).rows if row[0] in ("connection", "subscription", "observer")
    ]
    assert [row[:-1] for row in tokens] == [
        ["connection", "17", NONE, "a, b"],
        ["subscription", NONE, "client-1", "$orders:42"],
        ["subscription", "anonymous", NONE, "$orders:43"],
        ["observer", NONE, NONE, "orders:44"],
    ]
    assert tokens[0][-1] == "never"
    assert tokens[1][-1].endswith(" UTC")
    made = page["X-Tokens"].split()
    assert len(made) == 4
    assert [token for token in made if token.rpartition(".")[2] in html] == []


def test_requests_with_very_many_publications_are_cut() -> None:
    page = Client().get("/many")

    assert "500 publications" in page.content.decode()
    assert "1 more entries were left out" in panel_of(page)


@pytest.mark.parametrize("is_on", [True, False])
def test_nothing_is_recorded_where_the_panel_is_off(is_on: bool) -> None:
    views.seen.clear()
    client = Client()
    client.cookies["djdtRealtimePanel"] = "on" if is_on else "off"

    client.get("/looking")

    assert [each is not None for each in views.seen] == [is_on]
    assert recorder.get() is None


def test_work_that_outlives_its_request_adds_nothing() -> None:
    views.seen.clear()
    Client().get("/looking")
    log: Any = views.seen[0]

    log.token({"sub": "17"})
    log.positions({"orders:42": None})

    empty: dict[str, object] = {"publications": [], "pages": [], "tokens": []}
    assert log.as_stats() == {**empty, "deferred": False, "left_out": 0}
