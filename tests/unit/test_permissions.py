"""Who may do what, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.channel_rules import check_subscribe
from realtime.config.options import ChannelOptions, Config
from realtime.errors import Error, NotAvailable, PermissionDenied
from tests.unit.outcomes import check_history, check_presence, check_publish, outcome


@pytest.mark.parametrize(
    ("channel", "options", "user", "insecure", "expected"),
    [
        pytest.param("a", {}, "17", False, None, id="user"),
        pytest.param("a", {}, "", False, PermissionDenied, id="anonymous"),
        pytest.param("a", {"anonymous": True}, "", False, None, id="anonymous where allowed"),
        pytest.param("a", {}, "", True, None, id="anonymous, insecure"),
        pytest.param("a", {"server_side": True}, "17", False, PermissionDenied, id="server side"),
        pytest.param(
            "a", {"server_side": True}, "17", True, PermissionDenied, id="server side, insecure"
        ),
        pytest.param("a#17", {}, "17", False, None, id="own channel"),
        pytest.param("a#18", {}, "17", False, PermissionDenied, id="another user's channel"),
        pytest.param("a#18", {}, "17", True, PermissionDenied, id="another user's, insecure"),
        pytest.param("$a#18", {}, "17", False, PermissionDenied, id="private and user-limited"),
        pytest.param("a#", {}, "", False, PermissionDenied, id="anonymous, empty list"),
        pytest.param(
            "a#", {"anonymous": True}, "", False, PermissionDenied, id="anonymous, never listed"
        ),
        pytest.param(
            "a#17", {"anonymous": True}, "", False, PermissionDenied, id="anonymous, not listed"
        ),
    ],
)
def test_subscribe(
    channel: str,
    options: dict[str, Any],
    user: str,
    insecure: bool,
    expected: type[Error] | None,
) -> None:
    config = Config(client_insecure=insecure)

    assert outcome(check_subscribe, channel, ChannelOptions(**options), user, config) is expected


@pytest.mark.parametrize(
    ("options", "subscribed", "insecure", "expected"),
    [
        pytest.param({}, True, False, PermissionDenied, id="off"),
        pytest.param({"publish": True}, False, False, None, id="on"),
        pytest.param({}, False, True, None, id="insecure"),
        pytest.param(
            {"publish": True, "subscribe_to_publish": True},
            False,
            False,
            PermissionDenied,
            id="not subscribed",
        ),
        pytest.param(
            {"publish": True, "subscribe_to_publish": True}, True, False, None, id="subscribed"
        ),
        pytest.param(
            {"subscribe_to_publish": True}, True, False, PermissionDenied, id="off, subscribed"
        ),
        pytest.param(
            {"subscribe_to_publish": True},
            False,
            True,
            PermissionDenied,
            id="insecure, not subscribed",
        ),
        pytest.param({"subscribe_to_publish": True}, True, True, None, id="insecure, subscribed"),
    ],
)
def test_publish(
    options: dict[str, Any], subscribed: bool, insecure: bool, expected: type[Error] | None
) -> None:
    config = Config(client_insecure=insecure)

    assert outcome(check_publish, ChannelOptions(**options), "17", subscribed, config) is expected


@pytest.mark.parametrize(
    ("options", "subscribed", "expected"),
    [
        pytest.param({}, True, NotAvailable, id="off"),
        pytest.param({}, False, NotAvailable, id="off is said first"),
        pytest.param({"presence": True}, True, None, id="on"),
        pytest.param({"presence": True}, False, PermissionDenied, id="not subscribed"),
        pytest.param(
            {"presence": True, "presence_disable_for_client": True},
            True,
            NotAvailable,
            id="off for clients",
        ),
        pytest.param(
            {"presence": True, "presence_disable_for_client": True},
            False,
            NotAvailable,
            id="off for clients is said first",
        ),
    ],
)
def test_presence(options: dict[str, Any], subscribed: bool, expected: type[Error] | None) -> None:
    assert outcome(check_presence, ChannelOptions(**options), "17", subscribed) is expected


HISTORY = {"history_size": 10, "history_lifetime": 60}


@pytest.mark.parametrize(
    ("options", "subscribed", "expected"),
    [
        pytest.param({}, True, NotAvailable, id="off"),
        pytest.param({"history_size": 10}, True, NotAvailable, id="size without lifetime"),
        pytest.param({"history_lifetime": 60}, True, NotAvailable, id="lifetime without size"),
        pytest.param({}, False, NotAvailable, id="off is said first"),
        pytest.param(HISTORY, True, None, id="on"),
        pytest.param(HISTORY, False, PermissionDenied, id="not subscribed"),
        pytest.param({**HISTORY, "history_recover": True}, True, None, id="with recovery"),
        pytest.param(
            {**HISTORY, "history_disable_for_client": True},
            True,
            NotAvailable,
            id="off for clients",
        ),
    ],
)
def test_history(options: dict[str, Any], subscribed: bool, expected: type[Error] | None) -> None:
    assert outcome(check_history, ChannelOptions(**options), "17", subscribed) is expected
