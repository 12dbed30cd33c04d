"""Values of options: spellings, strings of the environment, namespaces."""

from __future__ import annotations

import pytest

from realtime.config import sources
from realtime.config.fields import kind_of
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS, ChannelOptions
from realtime.config.reader import from_strings, load, read
from tests.unit.config.option_rules import channel_options


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
    assert channel_options({"history_size": 1, "history_ttl": value}).history_lifetime == seconds


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
    assert getattr(channel_options({name: value}), name) == expected


# options from the environment: strings that become values of the option's type


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


RECOVERABLE = {"history_size": 10, "history_lifetime": 60, "history_recover": True}


# namespaces


@pytest.mark.parametrize("name", ["ab", "chat", "CHAT_2", "a-b", "__", "--", "0123456789"])
def test_namespace_name_of_the_pattern_is_accepted(name: str) -> None:
    assert list(load({"namespaces": [{"name": name}]}).namespaces) == [name]


def test_namespace_inherits_nothing_from_the_top_level() -> None:
    config = load({**RECOVERABLE, "presence": True, "namespaces": [{"name": "chat"}]})
    assert config.namespaces["chat"] == ChannelOptions()


def test_top_level_takes_nothing_from_a_namespace() -> None:
    config = load({"namespaces": [{"name": "chat", "presence": True}]})
    assert config.channel == ChannelOptions()
    assert config.namespaces["chat"] == ChannelOptions(presence=True)


def test_namespaces_may_be_a_string_of_json() -> None:
    config = load({"namespaces": '[{"name": "chat", "history_size": 5, "history_lifetime": 9}]'})
    assert config.namespaces["chat"] == ChannelOptions(history_size=5, history_lifetime=9)


def test_options_of_the_empty_namespace_are_the_top_level_ones() -> None:
    config = load({"presence": True, "namespaces": [{"name": "chat"}]})
    assert config.options_of_namespace("") == ChannelOptions(presence=True)
    assert config.options_of_namespace("chat") == ChannelOptions()
    assert config.options_of_namespace("nope") is None


@pytest.mark.parametrize(
    ("size", "lifetime", "kept"),
    [(0, 0, False), (10, 0, False), (0, 60, False), (10, 60, True), (1, 1, True)],
)
def test_history_needs_size_and_lifetime(size: int, lifetime: int, kept: bool) -> None:
    options = ChannelOptions(history_size=size, history_lifetime=lifetime)
    assert options.keeps_history is kept
