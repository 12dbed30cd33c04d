"""Options: namespaces, and what must hold between options."""

from __future__ import annotations

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load
from tests.unit.config.option_rules import rules

RECOVERABLE = {"history_size": 10, "history_lifetime": 60, "history_recover": True}


# namespaces


@pytest.mark.parametrize("name", ["ab", "chat", "CHAT_2", "a-b", "__", "--", "0123456789"])
def test_namespace_name_of_the_pattern_is_accepted(name: str) -> None:
    assert list(load({"namespaces": [{"name": name}]}).namespaces) == [name]


@pytest.mark.parametrize(
    "name", ["", "a", "a.b", "a b", "a:b", "chat\n", "$chat", "é-é", "a/b", None, 5, ["ab"]]
)
def test_namespace_name_outside_the_pattern_is_a_mistake(name: object) -> None:
    assert rules({"namespaces": [{"name": name}]}) == ["E005"]


def test_namespace_without_name_is_a_mistake() -> None:
    assert rules({"namespaces": [{"presence": True}]}) == ["E005"]


def test_namespace_configured_twice_is_a_mistake() -> None:
    assert rules({"namespaces": [{"name": "ab"}, {"name": "ab"}]}) == ["E006"]


def test_namespace_names_differ_by_case() -> None:
    assert rules({"namespaces": [{"name": "ab"}, {"name": "AB"}]}) == []


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


# rules between options


@pytest.mark.parametrize(
    ("size", "lifetime", "kept"),
    [(0, 0, False), (10, 0, False), (0, 60, False), (10, 60, True), (1, 1, True)],
)
def test_history_needs_size_and_lifetime(size: int, lifetime: int, kept: bool) -> None:
    options = ChannelOptions(history_size=size, history_lifetime=lifetime)
    assert options.keeps_history is kept


@pytest.mark.parametrize("missing", ["history_size", "history_lifetime"])
@pytest.mark.parametrize("place", ["top level", "namespace"])
def test_recovery_without_history_is_a_mistake(missing: str, place: str) -> None:
    options: dict[str, object] = {**RECOVERABLE, missing: 0}
    if place == "namespace":
        options = {"namespaces": [{"name": "chat", **options}]}
    assert rules(options) == ["E007"]


def test_recovery_with_history_is_no_mistake() -> None:
    assert rules({**RECOVERABLE, "namespaces": [{"name": "chat", **RECOVERABLE}]}) == []


PERSONAL = {"user_subscribe_to_personal": True}
SINGLE = {**PERSONAL, "user_personal_single_connection": True}
IN_CHAT = {"user_personal_channel_namespace": "chat"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(PERSONAL, [], id="top level"),
        pytest.param({**PERSONAL, **IN_CHAT}, ["E008"], id="unknown namespace"),
        pytest.param(IN_CHAT, [], id="unknown namespace, but off"),
        pytest.param({**PERSONAL, "channel_user_boundary": ""}, ["E023"], id="no boundary"),
        pytest.param(
            {**PERSONAL, **IN_CHAT, "namespaces": [{"name": "chat"}]}, [], id="known namespace"
        ),
        pytest.param(SINGLE, ["E009"], id="single connection without presence"),
        pytest.param({**SINGLE, "presence": True}, [], id="single connection with presence"),
        pytest.param(
            {**SINGLE, **IN_CHAT, "presence": True, "namespaces": [{"name": "chat"}]},
            ["E009"],
            id="presence elsewhere",
        ),
        pytest.param(
            {**SINGLE, **IN_CHAT, "namespaces": [{"name": "chat", "presence": True}]},
            [],
            id="presence there",
        ),
    ],
)
def test_personal_channel_needs_its_namespace_and_presence(
    options: dict[str, object], expected: list[str]
) -> None:
    assert rules(options) == expected


@pytest.mark.parametrize(
    ("ping", "expire", "expected"),
    [
        (25, 60, []),
        (1, 2, []),
        (59, 60, []),
        (60, 60, ["E012"]),
        (61, 60, ["E012"]),
    ],
)
def test_presence_must_be_renewed_before_it_expires(
    ping: int, expire: int, expected: list[str]
) -> None:
    options = {"client_presence_ping_interval": ping, "client_presence_expire_interval": expire}
    assert rules(options) == expected
