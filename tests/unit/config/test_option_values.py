"""Values of options in several spellings: durations, and choices."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load, read


def options(given: dict[str, Any]) -> ChannelOptions:
    """The options of a namespace."""
    return load({"namespaces": [{"name": "chat", **given}]}).namespaces["chat"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("300s", 300),
        ("720h", 2592000),
        ("1h30m", 5400),
        ("1m0.5s0.5s", 61),
        ("2000ms", 2),
        ("0", 0),
        ("0s", 0),
        (300, 300),
    ],
)
def test_duration_is_read_with_units_or_as_a_number(value: object, seconds: int) -> None:
    assert options({"history_size": 1, "history_ttl": value}).history_lifetime == seconds


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "a\udcff"),
        ("token_hmac_secret_key", "a\udcff"),
        ("allowed_origins", ["https://example.org", "a\udcff"]),
    ],
    ids=ascii,
)
def test_text_that_is_not_utf_8_is_a_mistake(name: str, value: object) -> None:
    # environment variables may have such bytes
    [problem] = read({name: value})[1]
    assert problem.id == "E003"
    assert problem.message == f"Option {name!r} must be text in UTF-8."


def test_time_with_fractions_may_be_less_than_a_second() -> None:
    assert load({"pong_timeout": "500ms"}).pong_timeout == 0.5


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("force_recovery_mode", "cache", "cache"),
        ("force_recovery_mode", "", "stream"),
        ("publication_data_format", "json_object", "json_object"),
        ("publication_data_format", "", ""),
    ],
)
def test_value_that_is_a_choice_is_taken(name: str, value: str, expected: str) -> None:
    assert getattr(options({name: value}), name) == expected
