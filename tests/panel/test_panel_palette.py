"""What the palette of the panel finds; who may ask it is in the tests of access."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from admin_panel.pages.palette import CHANNELS, OPTIONS, first
from tests.panel.urls import configure, url
from tests.panel.urls import signed_in as sign_in

pytestmark = pytest.mark.django_db


def test_names_that_begin_with_the_text_come_first_and_all_are_bounded() -> None:
    names = ["a-chat", "b-chat", "Chat:z", "chat:a"]
    many = [f"chat:{number:02}" for number in range(50)]
    assert first(names, "chat") == ["Chat:z", "chat:a", "a-chat", "b-chat"]
    assert first([*names, *many], "chat:0") == many[:CHANNELS]


def test_without_the_service_options_are_found_and_channels_are_not_known(
    home: str, settings: Settings
) -> None:
    configure(settings)
    found = sign_in("view").get(url(home, "overview_find", q="history_si")).json()
    place = f"{url(home, 'namespaces')}#option-history_size"
    assert found["channels"] is None
    assert found["options"][0] == {"name": "history_size", "url": place}


def test_options_are_bounded(home: str, settings: Settings) -> None:
    configure(settings)
    found = sign_in("view").get(url(home, "overview_find", q="e")).json()
    assert len(found["options"]) == OPTIONS


def test_nothing_is_asked_for_an_empty_text(home: str, settings: Settings) -> None:
    configure(settings)
    found = sign_in("view").get(url(home, "overview_find", q=" ")).json()
    assert found == {"channels": [], "options": [], "missing": []}


@pytest.mark.parametrize(("codename", "is_there"), [("view", True), ("publish", False)])
def test_palette_is_there_for_operators_who_may_view(
    home: str, settings: Settings, codename: str, is_there: bool
) -> None:
    configure(settings)
    page = "namespaces" if is_there else "publish"
    text = sign_in(codename).get(url(home, page)).content.decode()
    assert ('id="palette"' in text, "palette.js" in text) == (is_there, is_there)
