"""Channel names: which options they have, whom they let in, what is no name."""

from __future__ import annotations

import pytest

from realtime.channel_rules import (
    allows_user,
    can_be_listed,
    check_characters,
    check_length,
    is_private,
    is_user_limited,
    options_of,
    personal_channel,
)
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import load
from realtime.errors import BadRequest, LimitExceeded, NamespaceNotFound

CONFIG = load({"presence": True, "namespaces": [{"name": "ns"}, {"name": "an", "anonymous": True}]})
TOP, NS = CONFIG.channel, CONFIG.namespaces["ns"]
ANY = ChannelOptions()


@pytest.mark.parametrize(
    "channel",
    ["plain", "*", "a&b", "a/b", "a b", "a\nb", ":x", "::a", "$", "$p", "$:p", "a#17", ""],
)
def test_name_without_namespace_has_the_top_level_options(channel: str) -> None:
    assert options_of(channel, CONFIG) is TOP


@pytest.mark.parametrize("channel", ["ns:a", "ns:", "ns:$a", "ns:a:b", "$ns:a", "ns:a#17", "ns::"])
def test_name_with_a_namespace_has_its_options(channel: str) -> None:
    assert options_of(channel, CONFIG) is NS


@pytest.mark.parametrize(
    "channel", ["nope:a", "$nope:a", "nope:a#17", "ns#17:a", "a#ns:17", "$$ns:a", "NS:a", " ns:a"]
)
def test_unknown_namespace_is_refused(channel: str) -> None:
    with pytest.raises(NamespaceNotFound):
        options_of(channel, CONFIG)


@pytest.mark.parametrize(
    ("channel", "private"),
    [("$a", True), ("$", True), ("$ns:a", True), ("ns:$a", False), ("a$", False), ("a", False)],
)
def test_private_names_start_with_the_prefix(channel: str, private: bool) -> None:
    assert is_private(channel, CONFIG) is private


@pytest.mark.parametrize(
    ("channel", "user", "allowed"),
    [
        ("a", "17", True),
        ("a#17", "17", True),
        ("a#17,18", "17", True),
        ("a#18,17", "17", True),
        ("#17", "17", True),
        ("#17,", "17", True),
        ("a#18#17", "17", False),
        ("a#18#17", "18#17", False),
        ("#18#17", "17", False),
        ("##17", "17", False),
        ("##17", "#17", False),
        ("#18,17", "18,17", False),
        ("ns:a#17", "17", True),
        ("$a#17", "17", True),
        ("ns#17:a", "17", False),
        ("a#18", "17", False),
        ("a#", "17", False),
        ("a#17#18", "17", False),
        ("a#17 ", "17", False),
        ("a# 17", "17", False),
        ("a#117", "17", False),
        ("a#17", "1", False),
        ("an:a#17", "", False),
        ("an:a#", "", False),
        ("an:a#,", "", False),
        ("an:a#17,", "", False),
        ("an:a#,17", "", False),
        ("an:a#17,,18", "", False),
        ("an:a##", "", False),
        ("an:a#,#", "", False),
        ("$an:a#", "", False),
        ("#", "", False),
    ],
)
def test_user_limited_name_lets_in_the_users_after_its_only_boundary(
    channel: str, user: str, allowed: bool
) -> None:
    assert allows_user(channel, ANY, user, CONFIG) is allowed


@pytest.mark.parametrize(
    ("channel", "limited"), [("a#17", True), ("ns#:a", True), ("#", True), ("a", False)]
)
def test_user_boundary_anywhere_limits_a_name(channel: str, limited: bool) -> None:
    assert is_user_limited(channel, ANY, CONFIG) is limited


@pytest.mark.parametrize("channel", ["é", "日本", "a\u2028", "a\x80", "\ud800"])
def test_name_that_is_not_ascii_is_a_bad_request(channel: str) -> None:
    with pytest.raises(BadRequest):
        check_characters(channel)


@pytest.mark.parametrize("channel", ["a", "$a:b#c,d", "*&/", "\x00\x7f", "a b\n"])
def test_every_ascii_character_is_allowed(channel: str) -> None:
    check_characters(channel)


@pytest.mark.parametrize(("limit", "length"), [(255, 255), (1, 1), (0, 100_000)])
def test_name_within_the_limit_is_accepted(limit: int, length: int) -> None:
    check_length("a" * length, Config(channel_max_length=limit))


@pytest.mark.parametrize(("limit", "length"), [(255, 256), (1, 2)])
def test_longer_name_exceeds_the_limit(limit: int, length: int) -> None:
    with pytest.raises(LimitExceeded):
        check_length("a" * length, Config(channel_max_length=limit))


def test_markers_are_options() -> None:
    config = load(
        {
            "channel_private_prefix": "private-",
            "channel_namespace_boundary": "::",
            "channel_user_boundary": "@",
            "channel_user_separator": "|",
            "namespaces": [{"name": "ns"}],
        }
    )

    assert options_of("private-ns::a", config) is config.namespaces["ns"]
    assert options_of("ns:a", config) is config.channel
    assert is_private("private-a", config)
    assert not is_private("$a", config)
    assert allows_user("a@16|17", ANY, "17", config)
    assert allows_user("a#16", ANY, "17", config)
    assert not allows_user("a@16,17", ANY, "17", config)


def test_empty_markers_turn_their_features_off() -> None:
    config = load(
        {
            "channel_private_prefix": "",
            "channel_namespace_boundary": "",
            "channel_user_boundary": "",
            "namespaces": [{"name": "ns"}],
        }
    )

    assert options_of("nope:a", config) is config.channel
    assert not is_private("$a", config)
    assert not is_user_limited("a#18", ANY, config)
    assert allows_user("a#18", ANY, "17", config)


def test_without_a_separator_one_user_is_named() -> None:
    config = Config(channel_user_separator="")
    assert allows_user("a#17,18", ANY, "17,18", config)
    assert not allows_user("a#17,18", ANY, "17", config)


@pytest.mark.parametrize(("namespace", "name"), [("", "#17"), ("pp", "pp:#17")])
def test_personal_channel_belongs_to_one_user(namespace: str, name: str) -> None:
    config = Config(user_personal_channel_namespace=namespace)
    assert personal_channel("17", config) == name
    assert allows_user(name, ANY, "17", config)
    assert not allows_user(name, ANY, "18", config)


@pytest.mark.parametrize("user", ["18#17", "#17", "17#", "18,17", ",17", "17,", "#", ","])
def test_user_id_with_a_marker_cannot_be_listed(user: str) -> None:
    assert not can_be_listed(user, CONFIG)


@pytest.mark.parametrize("user", ["17", "a:b", "$a", "a b", "ann@example.org"])
def test_user_id_without_a_marker_can_be_listed(user: str) -> None:
    assert can_be_listed(user, CONFIG)


@pytest.mark.parametrize(
    ("boundary", "separator", "user", "listed"),
    [
        ("##", ",", "a#b", True),
        ("##", ",", "#b", False),  # "###b" could be of user "b", with a boundary after "#"
        ("#", "", "a,b", True),
        ("#", ",,", "a,b", True),
        ("#", ",,", "a,", False),
        ("", ",", "a", False),
    ],
)
def test_other_markers_make_other_users_listable(
    boundary: str, separator: str, user: str, listed: bool
) -> None:
    config = Config(channel_user_boundary=boundary, channel_user_separator=separator)
    assert can_be_listed(user, config) is listed
