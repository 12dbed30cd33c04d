"""The pages of a user: frames, and what went before where not all nodes answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from admin_panel.pages import frames
from admin_panel.pages.user import UserState
from admin_panel.paging import page_of
from admin_panel.people import CopiedFrame, UserPast
from realtime.operators.questions import Copy
from tests.panel.paths import page_path


@pytest.mark.parametrize(
    "text",
    [r'{"\ud800": 1}', '{"a": ' + "9" * 30 + "}", '{"a": -1}', '{"a": true}', "[" * 100_000, ""],
    ids=["half", "large", "negative", "boolean", "deep", "nothing"],
)
def test_numbers_that_cannot_be_sent_to_nodes_are_none(text: str) -> None:
    assert frames._taken(text) == {}


def test_numbers_of_nodes_are_read() -> None:
    assert frames._taken('{"U1": 7, "U2": 0}') == {"U1": 7, "U2": 0}


@pytest.mark.parametrize(
    ("zone", "shown"), [("Asia/Tokyo", "21:00:00.500"), ("America/New_York", "07:00:00.500")]
)
def test_time_of_a_frame_is_that_of_the_operator(zone: str, shown: str) -> None:
    at = datetime(2026, 1, 5, 12, 0, 0, 500_000, tzinfo=UTC).timestamp()
    with timezone.override(zone):
        entry = frames._entry(CopiedFrame("n", Copy(1, at, "sent", "c", "", "{}")))
    assert entry.time == shown


# where not all nodes answer


@pytest.mark.parametrize("missing", [[], ["old", "frozen"]], ids=["all", "two"])
def test_nodes_that_do_not_say_what_they_remember_are_named(missing: list[str]) -> None:
    nothing = page_of([], 1, None)
    state = UserState(nothing, nothing, 0, 0, False, 2, [], UserPast(0.0, 0, "", [], missing))
    text = render_to_string("admin_panel/_user_past.html", {"state": state, "user_id": "17"})
    assert ("These nodes did not answer: old, frozen." in text) is bool(missing)


@pytest.mark.django_db
def test_page_without_the_service_says_that_blocks_are_not_known(admin_client: Client) -> None:
    response = admin_client.get(page_path("user"))
    assert response.status_code == 503
    assert "Whether users are blocked is not known now." in response.content.decode()
