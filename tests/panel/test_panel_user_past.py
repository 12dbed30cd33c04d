"""What the panel says of what went before, where not all nodes answer."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.test import Client

from admin_panel.pages.user import UserState
from admin_panel.paging import page_of
from admin_panel.people import UserPast
from tests.panel.paths import page_path


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
