"""Channel options under older and newer names: each has the value that the other one means."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.options import ChannelOptions
from realtime.config.reader import load, read
from tests.unit.config.option_rules import channel_options

HISTORY = {"history_size": 10, "history_lifetime": 60}
RIGHTS = ("publish", "presence", "history")


def right(given: dict[str, Any], name: str) -> set[str]:
    """Who has a right."""
    read_options = channel_options(given)
    return {
        who
        for who in ("client", "subscriber", "anonymous")
        if getattr(read_options, f"allow_{name}_for_{who}")
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # from the older names to the newer ones
        ({}, {"allow_subscribe_for_client": True, "allow_user_limited_channels": True}),
        pytest.param(
            {"server_side": True},
            {"allow_subscribe_for_client": False, "allow_user_limited_channels": False},
            id="server_side",
        ),
        pytest.param({"anonymous": True}, {"allow_subscribe_for_anonymous": True}, id="anonymous"),
        pytest.param({}, {"allow_subscribe_for_anonymous": False}, id="not anonymous"),
        ({**HISTORY, "history_recover": True}, {"force_recovery": True}),
        pytest.param({"join_leave": True}, {"force_push_join_leave": True}, id="join_leave"),
        pytest.param({}, {"force_push_join_leave": False, "force_recovery": False}, id="all off"),
        pytest.param(
            {},
            {
                "force_positioning": False,
                "allow_positioning": False,
                "allow_recovery": False,
                "force_recovery_mode": "stream",
                "channel_regex": "",
                "publication_data_format": "",
            },
            id="newer options that no older one gives",
        ),
        # from the newer names to the older ones
        ({"allow_subscribe_for_anonymous": True}, {"anonymous": True}),
        ({"allow_publish_for_client": True}, {"publish": True, "subscribe_to_publish": False}),
        ({"allow_publish_for_subscriber": True}, {"publish": True, "subscribe_to_publish": True}),
        (
            {"allow_publish_for_client": True, "allow_publish_for_subscriber": True},
            {"publish": True, "subscribe_to_publish": False},
        ),
        ({"allow_publish_for_anonymous": True}, {"publish": False}),
        (
            {"presence": True, "allow_presence_for_client": False},
            {"presence_disable_for_client": True},
        ),
        (
            {"presence": True, "allow_presence_for_client": True},
            {"presence_disable_for_client": False},
        ),
        ({**HISTORY, "allow_history_for_client": False}, {"history_disable_for_client": True}),
        ({**HISTORY, "allow_history_for_subscriber": True}, {"history_disable_for_client": False}),
        ({**HISTORY, "force_recovery": True}, {"history_recover": True}),
        ({"history_size": 10, "history_ttl": 60}, {"history_lifetime": 60}),
        ({"subscribe_proxy_enabled": True}, {"proxy_subscribe": True}),
        ({"publish_proxy_enabled": True}, {"proxy_publish": True}),
        ({"allow_subscribe_for_client": False}, {"server_side": False}),
        # both: the newer name wins
        (
            {"server_side": True, "allow_subscribe_for_client": True},
            {"server_side": False, "allow_subscribe_for_client": True},
        ),
        (
            {"server_side": True, "allow_subscribe_for_client": False},
            {"server_side": True, "allow_subscribe_for_client": False},
        ),
        (
            {"anonymous": True, "allow_subscribe_for_anonymous": False},
            {"anonymous": False, "allow_subscribe_for_anonymous": False},
        ),
        (
            {"publish": True, "allow_publish_for_client": False},
            {"publish": False, "allow_publish_for_client": False},
        ),
        ({"history_lifetime": 5, "history_ttl": 60}, {"history_lifetime": 60}),
        (
            {**HISTORY, "history_recover": True, "force_recovery": False},
            {"history_recover": False, "force_recovery": False},
        ),
        (
            {"join_leave": True, "force_push_join_leave": False},
            {"join_leave": True, "force_push_join_leave": False},
        ),
        ({"proxy_publish": True, "publish_proxy_enabled": False}, {"proxy_publish": False}),
    ],
    ids=str,
)
def test_older_and_newer_names_agree(given: dict[str, Any], expected: dict[str, object]) -> None:
    assert {name: getattr(channel_options(given), name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "name", "who"),
    [
        pytest.param({}, "publish", set(), id="no publish"),
        pytest.param({"publish": True}, "publish", {"client", "anonymous"}, id="publish"),
        ({"publish": True, "subscribe_to_publish": True}, "publish", {"subscriber", "anonymous"}),
        pytest.param({"subscribe_to_publish": True}, "publish", set(), id="publish is off"),
        pytest.param({}, "presence", set(), id="no presence"),
        pytest.param({"presence": True}, "presence", {"subscriber", "anonymous"}, id="presence"),
        ({"presence": True, "presence_disable_for_client": True}, "presence", set()),
        pytest.param({"history_size": 10}, "history", set(), id="size without lifetime"),
        pytest.param(HISTORY, "history", {"subscriber", "anonymous"}, id="history"),
        ({**HISTORY, "history_disable_for_client": True}, "history", set()),
    ],
)
def test_older_names_give_a_right(given: dict[str, Any], name: str, who: set[str]) -> None:
    assert right(given, name) == who


@pytest.mark.parametrize("name", RIGHTS)
@pytest.mark.parametrize(
    ("given", "who"),
    [
        pytest.param({"client": False}, set(), id="nobody"),
        pytest.param({"client": True}, {"client"}, id="client"),
        pytest.param({"subscriber": True}, {"subscriber"}, id="subscriber"),
        ({"subscriber": True, "anonymous": True}, {"subscriber", "anonymous"}),
    ],
)
def test_newer_names_of_a_right_leave_no_part_of_it_to_the_older_ones(
    name: str, given: dict[str, bool], who: set[str]
) -> None:
    older = {**HISTORY, "publish": True, "presence": True}
    newer = {f"allow_{name}_for_{key}": value for key, value in given.items()}
    assert right({**older, **newer}, name) == who


def test_anonymous_clients_can_be_left_out_of_a_right_that_older_names_give() -> None:
    given = {"publish": True, "allow_publish_for_anonymous": False}
    assert right(given, "publish") == {"client"}
    assert channel_options(given).publish


@pytest.mark.parametrize("on", [True, False])
def test_names_that_list_users_are_limited_where_clients_may_subscribe(on: bool) -> None:
    assert channel_options({"allow_subscribe_for_client": on}).allow_user_limited_channels is on
    given = {"allow_subscribe_for_client": on, "allow_user_limited_channels": not on}
    assert channel_options(given).allow_user_limited_channels is not on


def test_options_made_in_code_are_resolved_too() -> None:
    assert ChannelOptions(publish=True).allow_publish_for_client
    assert ChannelOptions(allow_publish_for_client=True) == channel_options(
        {"allow_publish_for_client": True}
    )


# sources


def test_newer_name_of_an_option_of_the_service_is_read() -> None:
    assert load({"allow_anonymous_connect_without_token": True}).client_anonymous


def test_newer_name_wins_over_the_own_name_of_an_option() -> None:
    given = {"client_anonymous": True, "allow_anonymous_connect_without_token": False}
    assert not load(given).client_anonymous
    assert not load(dict(reversed(given.items()))).client_anonymous


def test_mistake_is_reported_under_the_name_that_was_given() -> None:
    _, problems = read({"history_ttl": "soon"})
    assert "'history_ttl'" in problems[0].message
