"""Who may do what, as tables: by the names of version 1 and by the newer ones."""

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
from realtime.clients.checks import (
    RIGHT_TO_HISTORY,
    RIGHT_TO_PRESENCE,
    RIGHT_TO_PUBLISH,
    Attempt,
    Checks,
)
from realtime.clients.rules import FIRST, SECOND
from realtime.clients.session import ClientSession, Subscription
from realtime.config.options import ChannelOptions, Config
from realtime.errors import BadRequest, Error, NotAnObject, NotAvailable, PermissionDenied
from realtime.node.hooks import Identity

Outcome = type[Error] | None
Options = dict[str, Any]
MAY, DENIED, OFF = None, PermissionDenied, NotAvailable
HISTORY: Options = {"history_size": 10, "history_lifetime": 60}


def outcome(check: Callable[..., None], *arguments: object) -> Outcome:
    """The error that the check raises with these arguments, or None."""
    try:
        check(*arguments)
    except Error as error:
        return type(error)
    return None


def decided(
    right: Checks, options: Options, user: str, subscribed: bool, *, second: bool = False
) -> Outcome:
    """What a client of a user is told; `second`: of the second generation."""
    config = Config(client_insecure=options.get("insecure", False))
    read = ChannelOptions(**{name: value for name, value in options.items() if name != "insecure"})
    session = ClientSession(config, 0.0, SECOND if second else FIRST)
    session.connected(Identity(user), None)
    if subscribed:
        session.subscriptions["a"] = Subscription(read)
    return outcome(right.decide, Attempt("a", session, config, options=read))


CLOSED = {"allow_subscribe_for_client": False}
BY_NAME = {**CLOSED, "allow_user_limited_channels": True}
ORDINARY = {"allow_user_limited_channels": False}
SERVER_SIDE, ANONYMOUS = {"server_side": True}, {"anonymous": True}
ANONYMOUSLY = {"allow_subscribe_for_anonymous": True}

SUBSCRIBE: tuple[tuple[str, Options, str, bool, Outcome], ...] = (
    # channel, options, user, whether insecure
    ("a", {}, "17", False, MAY),
    ("a", {}, "", False, DENIED),
    ("a", ANONYMOUS, "", False, MAY),
    ("a", {}, "", True, MAY),
    ("a", SERVER_SIDE, "17", False, DENIED),
    ("a", SERVER_SIDE, "17", True, DENIED),
    ("a#17", {}, "17", False, MAY),
    ("a#18", {}, "17", False, DENIED),
    ("a#18", {}, "17", True, DENIED),
    ("$a#18", {}, "17", False, DENIED),
    ("a#", {}, "", False, DENIED),
    ("a#", ANONYMOUS, "", False, DENIED),
    ("a#17", ANONYMOUS, "", False, DENIED),
    # by the newer names
    ("a", CLOSED, "17", False, DENIED),
    ("a", CLOSED, "17", True, MAY),
    ("a", ANONYMOUSLY, "", False, MAY),
    ("a", {**CLOSED, **ANONYMOUSLY}, "", False, DENIED),
    ("a#17", BY_NAME, "17", False, MAY),
    ("a#18", BY_NAME, "17", False, DENIED),
    ("a", BY_NAME, "17", False, DENIED),
    ("a#17", CLOSED, "17", False, DENIED),
    ("a#18", ORDINARY, "17", False, MAY),
)


@pytest.mark.parametrize(("channel", "options", "user", "insecure", "expected"), SUBSCRIBE)
def test_subscribe_where_neither_token_nor_hook_decides(
    channel: str, options: Options, user: str, insecure: bool, expected: Outcome
) -> None:
    config, read = Config(client_insecure=insecure), ChannelOptions(**options)
    found = outcome(check_subscribe, channel, read, user, config)
    if not any(name.startswith("allow") for name in options):
        assert found is expected
    assert (found or outcome(check_unasked, channel, read, config)) is expected


MEMBERS, INSECURE = {"subscribe_to_publish": True}, {"insecure": True}
PRESENT, KEPT = {"presence": True}, HISTORY
NOT_PRESENT = {**PRESENT, "presence_disable_for_client": True}
NOT_KEPT = {**KEPT, "history_disable_for_client": True}

RIGHTS: tuple[tuple[Checks, Options, bool, Outcome], ...] = (
    # right, options, whether subscribed
    (RIGHT_TO_PUBLISH, {}, True, DENIED),
    (RIGHT_TO_PUBLISH, {"publish": True}, False, MAY),
    (RIGHT_TO_PUBLISH, INSECURE, False, MAY),
    (RIGHT_TO_PUBLISH, {"publish": True, **MEMBERS}, False, DENIED),
    (RIGHT_TO_PUBLISH, {"publish": True, **MEMBERS}, True, MAY),
    (RIGHT_TO_PUBLISH, MEMBERS, True, DENIED),
    (RIGHT_TO_PUBLISH, {**MEMBERS, **INSECURE}, False, DENIED),
    (RIGHT_TO_PUBLISH, {**MEMBERS, **INSECURE}, True, MAY),
    (RIGHT_TO_PRESENCE, {}, True, OFF),
    (RIGHT_TO_PRESENCE, {}, False, OFF),
    (RIGHT_TO_PRESENCE, PRESENT, True, MAY),
    (RIGHT_TO_PRESENCE, PRESENT, False, DENIED),
    (RIGHT_TO_PRESENCE, NOT_PRESENT, True, OFF),
    (RIGHT_TO_PRESENCE, NOT_PRESENT, False, OFF),
    (RIGHT_TO_HISTORY, {}, True, OFF),
    (RIGHT_TO_HISTORY, {"history_size": 10}, True, OFF),
    (RIGHT_TO_HISTORY, {"history_lifetime": 60}, True, OFF),
    (RIGHT_TO_HISTORY, {}, False, OFF),
    (RIGHT_TO_HISTORY, KEPT, True, MAY),
    (RIGHT_TO_HISTORY, KEPT, False, DENIED),
    (RIGHT_TO_HISTORY, {**KEPT, "history_recover": True}, True, MAY),
    (RIGHT_TO_HISTORY, NOT_KEPT, True, OFF),
)


@pytest.mark.parametrize(("right", "options", "subscribed", "expected"), RIGHTS)
def test_right_of_a_user(
    right: Checks, options: Options, subscribed: bool, expected: Outcome
) -> None:
    assert decided(right, options, "17", subscribed) is expected


NEWER: tuple[tuple[Options, str, bool, Outcome], ...] = (
    # options for a right, user, whether subscribed
    ({"client": False}, "17", True, DENIED),
    ({"anonymous": True, "client": False}, "", True, DENIED),
    ({"client": True}, "17", False, MAY),
    ({"client": True}, "", False, DENIED),
    ({"client": True, "anonymous": True}, "", False, MAY),
    ({"subscriber": True}, "17", True, MAY),
    ({"subscriber": True}, "17", False, DENIED),
    ({"subscriber": True}, "", True, DENIED),
    ({"subscriber": True, "anonymous": True}, "", True, MAY),
    ({"subscriber": True, "anonymous": True}, "", False, DENIED),
)


@pytest.mark.parametrize(("options", "user", "subscribed", "expected"), NEWER)
@pytest.mark.parametrize(
    ("right", "name", "on"),
    [
        (RIGHT_TO_PUBLISH, "publish", {}),
        (RIGHT_TO_PRESENCE, "presence", PRESENT),
        (RIGHT_TO_HISTORY, "history", KEPT),
    ],
)
def test_right_by_newer_names(
    right: Checks,
    name: str,
    on: Options,
    options: Options,
    user: str,
    subscribed: bool,
    expected: Outcome,
) -> None:
    newer = {f"allow_{name}_for_{who}": value for who, value in options.items()}
    assert decided(right, on | newer, user, subscribed, second=True) is expected


@pytest.mark.parametrize(
    ("right", "hidden"), [(RIGHT_TO_PRESENCE, NOT_PRESENT), (RIGHT_TO_HISTORY, NOT_KEPT)]
)
def test_what_is_off_for_clients_has_the_error_of_the_generation(
    right: Checks, hidden: Options
) -> None:
    assert decided(right, hidden, "17", True) is OFF
    assert decided(right, hidden, "17", True, second=True) is DENIED
    assert decided(right, {}, "17", True, second=True) is OFF, "off for everybody"


NAMES: tuple[tuple[str, str, Outcome], ...] = (
    # expression, channel: in the namespace it is for what follows the colon
    (r"^room-[0-9]+\z", "ns:room-1", MAY),
    (r"^room-[0-9]+\z", "$ns:room-1", MAY),
    (r"^room-[0-9]+\z", "ns:room-", BadRequest),
    (r"^room-[0-9]+\z", "ns:Room-1", BadRequest),
    (r"^room-[0-9]+\z", "ns:room-1 ", BadRequest),
    (r"^room-[0-9]+\z", "ns:", BadRequest),
    (r"^room-[0-9]+\z", "ns:été", BadRequest),
    # at the top level for the whole name
    ("^a", "a", MAY),
    ("^a", "$a", BadRequest),
    ("^a", ":a", BadRequest),
    # only an expression admits other characters than ASCII
    ("", "a", MAY),
    ("", "é", BadRequest),
    ("^.$", "é", MAY),
    ("b", "abc", MAY),
    # for all of names that are not too long
    ("^[a-z]+$", "aaaa", MAY),
    ("^[a-z]+$", "aaaaaaaaaaa", BadRequest),
    ("^[a-z]+$", "aaa\n", BadRequest),
)


@pytest.mark.parametrize(("expression", "channel", "expected"), NAMES)
def test_name_must_match_the_expression(expression: str, channel: str, expected: Outcome) -> None:
    options = ChannelOptions(channel_regex=expression)
    config = Config(namespaces={"ns": options}, channel_max_length=10)
    assert outcome(check_pattern, channel, options, config) is expected


def test_length_of_a_name_is_counted_in_bytes() -> None:
    config = Config(channel_max_length=4)
    assert outcome(check_length, "éé", config, BadRequest) is None
    assert outcome(check_length, "ééa", config, BadRequest) is BadRequest


@pytest.mark.parametrize(
    ("wanted", "data", "expected"),
    [
        ("", "5", MAY),
        ("json", "[]", MAY),
        ("json_object", '{"a": 1}', MAY),
        ("json_object", " {} ", MAY),
        ("json_object", "[{}]", NotAnObject),
        ("json_object", '"{"', NotAnObject),
        ("json_object", "null", NotAnObject),
    ],
)
def test_data_has_the_format_of_the_channel(wanted: str, data: str, expected: Outcome) -> None:
    options = ChannelOptions(publication_data_format=wanted)
    assert outcome(check_data, options, payload.check(data.encode())) is expected


UNREAD = {**HISTORY, "allow_history_for_client": False}
POSITIONS: tuple[tuple[Options, str, bool, bool, bool], ...] = (
    # options, user, whether asked for; whether it recovers, whether it has a position
    (UNREAD, "17", True, False, False),
    ({**UNREAD, "force_recovery": True}, "17", False, True, True),
    ({**UNREAD, "force_positioning": True}, "17", False, False, True),
    ({**UNREAD, "allow_recovery": True}, "17", True, True, False),
    ({**UNREAD, "allow_recovery": True}, "17", False, False, False),
    ({**UNREAD, "allow_positioning": True}, "17", True, False, True),
    ({**UNREAD, "allow_positioning": True}, "17", False, False, False),
    (HISTORY, "17", True, True, True),
    (HISTORY, "17", False, False, False),
    ({**UNREAD, "allow_history_for_subscriber": True}, "", True, False, False),
    ({"force_recovery": True, "force_positioning": True}, "17", True, False, False),
)


@pytest.mark.parametrize(("options", "user", "asked", "recovers", "positioned"), POSITIONS)
def test_position_of_a_subscription(
    options: Options, user: str, asked: bool, recovers: bool, positioned: bool
) -> None:
    read = ChannelOptions(**options)
    assert is_recoverable(read, user, asked) is recovers
    assert is_positioned(read, user, asked) is positioned


UNFORCED = {"join_leave": True, "force_push_join_leave": False}
JOINS: tuple[tuple[Options, bool, bool], ...] = (
    # options, whether asked for
    ({}, True, False),
    ({"force_push_join_leave": True}, True, False),
    ({"join_leave": True}, False, True),
    ({**UNFORCED, "presence": True}, True, True),
    ({**UNFORCED, "presence": True}, False, False),
    ({**UNFORCED, "allow_presence_for_client": False}, True, False),
)


@pytest.mark.parametrize(("options", "asked", "expected"), JOINS)
def test_joins_of_a_subscription(options: Options, asked: bool, expected: bool) -> None:
    assert receives_joins(ChannelOptions(**options), "17", asked) is expected
