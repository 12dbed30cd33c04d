"""Parts of the publish page: names in a text, and above which size it asks."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from admin_panel.channel_names import join, split
from admin_panel.publishing.threshold import SETTING, Threshold, threshold

WRITTEN = [
    ("", []),
    (" \n\t ", []),
    ("news", ["news"]),
    ("news chat:lobby", ["news", "chat:lobby"]),
    ("news\r\nchat:lobby\n", ["news", "chat:lobby"]),
    ("b a b", ["b", "a"]),
    ('"a b" c', ["a b", "c"]),
    (r'"say \"hi\"" c', ['say "hi"', "c"]),
    ('"not closed', ['"not', "closed"]),
    ('"a"b', ['"a"b']),
    (r'"\x"', [r'"\x"']),
    ("a\"b c'd", ['a"b', "c'd"]),
]
"""What is typed, and the names it means (see the module's docstring)."""


@pytest.mark.parametrize(("text", "names"), WRITTEN, ids=[repr(text) for text, _ in WRITTEN])
def test_text_is_read_as_names(text: str, names: list[str]) -> None:
    assert split(text) == names


@given(st.lists(st.text(st.characters(codec="ascii"), min_size=1), unique=True))
def test_names_that_are_written_are_read_again(names: list[str]) -> None:
    assert split(join(names)) == names


SIZES = [
    (100, 10, False),
    (101, 1, True),
    (0, 11, True),
    (0, 1, False),
]
"""Subscribers, channels, and whether the default threshold (100 and 10) is passed."""


@pytest.mark.parametrize(("subscribers", "channels", "passed"), SIZES)
def test_default_threshold_is_100_subscribers_or_10_channels(
    subscribers: int, channels: int, passed: bool
) -> None:
    assert threshold().is_passed(subscribers, channels) is passed


def test_setting_moves_the_threshold(settings: Settings) -> None:
    setattr(settings, SETTING, {"subscribers": 5})
    assert threshold() == Threshold(subscribers=5, channels=10)


WRONG = [50, None, {"subscriber": 5}, {"channels": -1}, {"channels": "5"}, {"channels": True}]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_wrong_setting_is_an_error_of_the_checks_and_leaves_the_default(
    settings: Settings, value: object
) -> None:
    setattr(settings, SETTING, value)
    assert "realtime_admin.E001" in [found.id for found in run_checks()]
    assert threshold() == Threshold()


def test_right_setting_is_no_error_of_the_checks(settings: Settings) -> None:
    setattr(settings, SETTING, {"subscribers": 0, "channels": 3})
    assert "realtime_admin.E001" not in [found.id for found in run_checks()]
