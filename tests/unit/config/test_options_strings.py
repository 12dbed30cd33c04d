"""Options from the environment: strings that become values of the option's type."""

from __future__ import annotations

import pytest

from realtime.config import sources
from realtime.config.fields import kind_of
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
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


EMPTIED = {
    name: ([] if kind_of(option) == "list" else "")
    for name, option in {**CONFIG_FIELDS, **CHANNEL_OPTION_FIELDS}.items()
    if kind_of(option) == "list" or isinstance(option.default, str)
}
"""Every option that may be empty → that value."""


@pytest.mark.parametrize(("name", "empty"), EMPTIED.items(), ids=list(EMPTIED))
@pytest.mark.parametrize("text", ["none", "None", " none "])
def test_every_option_can_be_emptied_by_the_environment(
    name: str, empty: object, text: str
) -> None:
    not_set, problems = read(from_strings({name: ""}))
    assert (not_set, problems) == read({})
    emptied = read({name: empty})
    if emptied == read({}) and not isinstance(empty, list):
        assert from_strings({name: text}) == {name: text}  # a text like any other
    else:
        assert read(from_strings({name: text})) == emptied


def test_rates_are_off_by_the_word_none_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_CLIENT_COMMAND_RATES", "")
    assert sources.examine().config.rates_of_clients
    monkeypatch.setenv("SERVICE_CLIENT_COMMAND_RATES", "none")
    assert sources.examine().config.rates_of_clients == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [("presence", "yes"), ("presence", "2"), ("history_size", "ten"), ("history_size", "1.5")],
)
def test_string_that_does_not_fit_is_reported_as_a_wrong_type(name: str, text: str) -> None:
    assert [problem.id for problem in read(from_strings({name: text}))[1]] == ["E003"]
