"""Who may do what by the newer names of the options, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realtime import payload
from realtime.channel_rules import (
    check_data,
    check_length,
    check_pattern,
    check_subscribe,
    check_unasked,
    is_positioned,
    is_recoverable,
    receives_joins,
)
from realtime.config.options import ChannelOptions, Config
from realtime.errors import BadRequest, Error, NotAnObject, NotAvailable, PermissionDenied
from tests.unit.outcomes import check_history, check_presence, check_publish, outcome

HISTORY: dict[str, Any] = {"history_size": 10, "history_lifetime": 60}


CLOSED = {"allow_subscribe_for_client": False}
BY_NAME = {**CLOSED, "allow_user_limited_channels": True}
ORDINARY = {"allow_user_limited_channels": False}


@pytest.mark.parametrize(
    ("channel", "options", "user", "insecure", "expected"),
    [
        pytest.param("a", {}, "17", False, None, id="open"),
        pytest.param("a", CLOSED, "17", False, PermissionDenied, id="closed"),
        pytest.param("a", CLOSED, "17", True, None, id="closed, insecure"),
        pytest.param("a", {}, "", False, PermissionDenied, id="anonymous"),
        pytest.param("a", {"allow_subscribe_for_anonymous": True}, "", False, None, id="allowed"),
        pytest.param(
            "a",
            {**CLOSED, "allow_subscribe_for_anonymous": True},
            "",
            False,
            PermissionDenied,
            id="anonymous alone opens nothing",
        ),
        pytest.param("a#17", BY_NAME, "17", False, None, id="closed, but listed"),
        pytest.param("a#18", BY_NAME, "17", False, PermissionDenied, id="closed, another listed"),
        pytest.param("a", BY_NAME, "17", False, PermissionDenied, id="closed, nobody listed"),
        pytest.param("a#17", CLOSED, "17", False, PermissionDenied, id="closed, # is ordinary"),
        pytest.param("a#18", ORDINARY, "17", False, None, id="open, # is ordinary"),
        pytest.param("a", {"server_side": True}, "17", False, PermissionDenied, id="server side"),
    ],
)
def test_subscribe_where_neither_token_nor_hook_decides(
    channel: str,
    options: dict[str, Any],
    user: str,
    insecure: bool,
    expected: type[Error] | None,
) -> None:
    config, read = Config(client_insecure=insecure), ChannelOptions(**options)

    found = outcome(check_subscribe, channel, read, user, config)

    assert (found or outcome(check_unasked, channel, read, config)) is expected


def rights(name: str) -> list[Any]:
    """A table for the three rights that have the same shape."""
    client, subscriber = f"allow_{name}_for_client", f"allow_{name}_for_subscriber"
    anonymous = f"allow_{name}_for_anonymous"
    return [
        pytest.param({client: False}, "17", True, PermissionDenied, id="nobody"),
        pytest.param({anonymous: True, client: False}, "", True, PermissionDenied, id="not alone"),
        pytest.param({client: True}, "17", False, None, id="client"),
        pytest.param({client: True}, "", False, PermissionDenied, id="client, anonymous"),
        pytest.param({client: True, anonymous: True}, "", False, None, id="client, allowed"),
        pytest.param({subscriber: True}, "17", True, None, id="subscriber"),
        pytest.param({subscriber: True}, "17", False, PermissionDenied, id="not subscribed"),
        pytest.param({subscriber: True}, "", True, PermissionDenied, id="subscriber, anonymous"),
        pytest.param({subscriber: True, anonymous: True}, "", True, None, id="subscriber, allowed"),
        pytest.param(
            {subscriber: True, anonymous: True},
            "",
            False,
            PermissionDenied,
            id="anonymous, not subscribed",
        ),
    ]


@pytest.mark.parametrize(("options", "user", "subscribed", "expected"), rights("publish"))
def test_publish_by_newer_names(
    options: dict[str, Any], user: str, subscribed: bool, expected: type[Error] | None
) -> None:
    read = ChannelOptions(**options)

    assert outcome(check_publish, read, user, subscribed, Config()) is expected


@pytest.mark.parametrize(("options", "user", "subscribed", "expected"), rights("presence"))
def test_presence_by_newer_names(
    options: dict[str, Any], user: str, subscribed: bool, expected: type[Error] | None
) -> None:
    read = ChannelOptions(presence=True, **options)

    assert outcome(check_presence, read, user, subscribed, PermissionDenied) is expected


@pytest.mark.parametrize(("options", "user", "subscribed", "expected"), rights("history"))
def test_history_by_newer_names(
    options: dict[str, Any], user: str, subscribed: bool, expected: type[Error] | None
) -> None:
    read = ChannelOptions(**HISTORY, **options)

    assert outcome(check_history, read, user, subscribed, PermissionDenied) is expected


def test_what_is_off_is_not_available_for_either_generation() -> None:
    assert outcome(check_presence, ChannelOptions(), "17", True, PermissionDenied) is NotAvailable
    assert outcome(check_history, ChannelOptions(), "17", True, PermissionDenied) is NotAvailable


@pytest.mark.parametrize("check", [check_presence, check_history])
def test_what_is_off_for_clients_has_the_error_of_the_generation(
    check: Callable[..., None],
) -> None:
    options = ChannelOptions(
        presence=True, presence_disable_for_client=True, history_disable_for_client=True, **HISTORY
    )

    assert outcome(check, options, "17", True) is NotAvailable
    assert outcome(check, options, "17", True, PermissionDenied) is PermissionDenied


# names


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("ns:room-1", None),
        ("$ns:room-1", None),
        ("ns:room-", BadRequest),
        ("ns:Room-1", BadRequest),
        ("ns:room-1 ", BadRequest),
        ("ns:", BadRequest),
        ("ns:été", BadRequest),
    ],
)
def test_name_must_match_the_expression_of_its_namespace(
    channel: str, expected: type[Error] | None
) -> None:
    options = ChannelOptions(channel_regex=r"^room-[0-9]+\z")
    config = Config(namespaces={"ns": options})

    assert outcome(check_pattern, channel, options, config) is expected


@pytest.mark.parametrize(
    ("channel", "expected"), [("a", None), ("$a", BadRequest), (":a", BadRequest)]
)
def test_expression_of_the_top_level_is_for_the_whole_name(
    channel: str, expected: type[Error] | None
) -> None:
    options = ChannelOptions(channel_regex="^a")

    assert outcome(check_pattern, channel, options, Config()) is expected


@pytest.mark.parametrize(
    ("expression", "channel", "expected"),
    [("", "a", None), ("", "é", BadRequest), ("^.$", "é", None), ("b", "abc", None)],
)
def test_only_an_expression_admits_other_characters_than_ascii(
    expression: str, channel: str, expected: type[Error] | None
) -> None:
    options = ChannelOptions(channel_regex=expression)

    assert outcome(check_pattern, channel, options, Config()) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("aaaa", None), ("aaaaa", BadRequest), ("aaa\n", BadRequest)]
)
def test_expression_is_for_names_that_are_not_too_long_and_all_of_them(
    name: str, expected: type[Error] | None
) -> None:
    options = ChannelOptions(channel_regex="^[a-z]+$")

    assert outcome(check_pattern, name, options, Config(channel_max_length=4)) is expected


def test_length_of_a_name_is_counted_in_bytes() -> None:
    config = Config(channel_max_length=4)

    assert outcome(check_length, "éé", config, BadRequest) is None
    assert outcome(check_length, "ééa", config, BadRequest) is BadRequest


# publications


@pytest.mark.parametrize(
    ("wanted", "data", "expected"),
    [
        ("", "5", None),
        ("json", "[]", None),
        ("json_object", '{"a": 1}', None),
        ("json_object", " {} ", None),
        ("json_object", "[{}]", NotAnObject),
        ("json_object", '"{"', NotAnObject),
        ("json_object", "null", NotAnObject),
    ],
)
def test_data_has_the_format_of_the_channel(
    wanted: str, data: str, expected: type[Error] | None
) -> None:
    options = ChannelOptions(publication_data_format=wanted)

    assert outcome(check_data, options, payload.check(data.encode())) is expected


# what a subscription has


OFF = {**HISTORY, "allow_history_for_client": False}


@pytest.mark.parametrize(
    ("options", "user", "asked", "recovers", "has_position"),
    [
        pytest.param(OFF, "17", True, False, False, id="nothing allows it"),
        pytest.param({**OFF, "force_recovery": True}, "17", False, True, True, id="recovery"),
        pytest.param({**OFF, "force_positioning": True}, "17", False, False, True, id="position"),
        pytest.param({**OFF, "allow_recovery": True}, "17", True, True, False, id="may recover"),
        pytest.param({**OFF, "allow_recovery": True}, "17", False, False, False, id="unasked"),
        pytest.param({**OFF, "allow_positioning": True}, "17", True, False, True, id="may have"),
        pytest.param({**OFF, "allow_positioning": True}, "17", False, False, False, id="not asked"),
        pytest.param(HISTORY, "17", True, True, True, id="reads history"),
        pytest.param(HISTORY, "17", False, False, False, id="reads history, unasked"),
        pytest.param(
            {**OFF, "allow_history_for_subscriber": True}, "", True, False, False, id="anonymous"
        ),
        pytest.param(
            {"force_recovery": True, "force_positioning": True},
            "17",
            True,
            False,
            False,
            id="no history",
        ),
    ],
)
def test_position_of_a_subscription(
    options: dict[str, Any], user: str, asked: bool, recovers: bool, has_position: bool
) -> None:
    read = ChannelOptions(**options)

    assert is_recoverable(read, user, asked) is recovers
    assert is_positioned(read, user, asked) is has_position


@pytest.mark.parametrize(
    ("options", "user", "asked", "expected"),
    [
        pytest.param({}, "17", True, False, id="off"),
        pytest.param({"force_push_join_leave": True}, "17", True, False, id="none are sent"),
        pytest.param({"join_leave": True}, "17", False, True, id="for all"),
        pytest.param(
            {"join_leave": True, "force_push_join_leave": False, "presence": True},
            "17",
            True,
            True,
            id="asked",
        ),
        pytest.param(
            {"join_leave": True, "force_push_join_leave": False, "presence": True},
            "17",
            False,
            False,
            id="not asked",
        ),
        pytest.param(
            {
                "join_leave": True,
                "force_push_join_leave": False,
                "allow_presence_for_client": False,
            },
            "17",
            True,
            False,
            id="asked, without access to presence",
        ),
    ],
)
def test_joins_of_a_subscription(
    options: dict[str, Any], user: str, asked: bool, expected: bool
) -> None:
    assert receives_joins(ChannelOptions(**options), user, asked) is expected
