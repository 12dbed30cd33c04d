"""The API key in the header Authorization; the live tests have every other form of it."""

from __future__ import annotations

import pytest

from realtime.server_api.http import Head, is_key


@pytest.mark.parametrize(
    ("authorization", "is_right"),
    [
        ("apikey two words", True),
        ("apikey  two words ", True),
        ("apikey two  words", False),
        ("apikey two", False),
        ("apikey words", False),
        ("two words", False),
    ],
)
def test_key_may_hold_spaces(authorization: str, is_right: bool) -> None:
    assert is_key("two words", Head("POST", "", None, authorization)) is is_right
