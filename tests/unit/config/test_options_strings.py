"""Options from the environment: strings that become values of the option's type."""

from __future__ import annotations

import pytest

from realtime.config.reader import from_strings, read


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("presence", "true", True),
        ("presence", "TRUE", True),
        ("presence", "1", True),
        ("presence", "false", False),
        ("presence", "0", False),
        ("history_size", "10", 10),
        ("websocket_message_size_limit", "-1", -1),
        ("api_key", "1", "1"),
        ("api_key", " a b ", " a b "),
        ("secret", "true", "true"),
        ("allowed_origins", "https://a https://b", ["https://a", "https://b"]),
        ("namespaces", '[{"name": "chat"}]', '[{"name": "chat"}]'),
        ("unknown", "1", "1"),
    ],
)
def test_string_becomes_a_value_of_the_option_s_type(name: str, text: str, value: object) -> None:
    assert from_strings({name: text}) == {name: value}


def test_empty_string_means_not_set() -> None:
    assert from_strings({"presence": "", "api_key": "", "allowed_origins": ""}) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [("presence", "yes"), ("presence", "2"), ("history_size", "ten"), ("history_size", "1.5")],
)
def test_string_that_does_not_fit_is_reported_as_a_wrong_type(name: str, text: str) -> None:
    assert [problem.rule for problem in read(from_strings({name: text}))[1]] == ["type"]
