"""Options: namespaces, and what must hold between options."""

from __future__ import annotations

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load

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


# rules between options


@pytest.mark.parametrize(
    ("size", "lifetime", "kept"),
    [(0, 0, False), (10, 0, False), (0, 60, False), (10, 60, True), (1, 1, True)],
)
def test_history_needs_size_and_lifetime(size: int, lifetime: int, kept: bool) -> None:
    options = ChannelOptions(history_size=size, history_lifetime=lifetime)
    assert options.keeps_history is kept
