"""System checks of endpoints, and of channels about which nobody can be asked."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.core.checks import CheckMessage

from realtime import hooks
from tests.unit.checks import system_checks
from tests.unit.checks.system_checks import ids

ENDPOINTS = [
    f"proxy_{kind}_endpoint" for kind in ("connect", "refresh", "subscribe", "publish", "rpc")
]
URL = "http://127.0.0.1/ask"


def found(**options: object) -> list[CheckMessage]:
    """What the checks say, where pages of other origins cannot connect."""
    sound = {"token_hmac_secret_key": "k" * 32, "allowed_origins": ["https://example.org"]}
    return system_checks.found(**sound | options)


@pytest.mark.parametrize("option", ENDPOINTS)
@pytest.mark.parametrize(
    "url",
    [
        *("app.example.org/ask", "//app.example.org/ask", "/ask", "ftp://app.example.org/ask"),
        *("http://", "http:///ask", "http:app.example.org", "http://app.example.org:port/ask"),
        *("http://app.example.org:70000/ask", "http://[::1/ask", "http://app.example.org/a b"),
        *("http://app.example.org/\n", " http://app.example.org/ask"),
    ],
)
def test_endpoint_that_is_no_url_of_http_is_found(option: str, url: str) -> None:
    (message,) = found(**{option: url})
    assert message.id == "realtime.E020"
    assert option in message.msg
    assert message.hint


@pytest.mark.parametrize("option", ENDPOINTS)
@pytest.mark.parametrize(
    "url",
    [
        *("", "http://app/ask", "https://app.example.org"),
        *("HTTPS://app.example.org:8443/ask?key=1", "http://user:password@127.0.0.1:3000/ask"),
        *("http://[::1]:3000/ask", "http://caf\xe9.example.org/\xe9"),
    ],
)
def test_url_of_http_is_right(option: str, url: str) -> None:
    kind = option.split("_")[1]
    asked = {f"proxy_{kind}": True} if url and kind in ("subscribe", "publish") else {}
    assert found(**{option: url}, **asked) == []


# W010


def answer(request: Any) -> bool:
    return True


def options_where(place: str, option: str) -> dict[str, object]:
    """Options that turn a channel option on at the top level ("") or in a namespace."""
    if not place:
        return {option: True}
    return {"namespaces": [{"name": place, option: True}, {"name": "other"}]}


@pytest.mark.parametrize("kind", ["subscribe", "publish"])
@pytest.mark.parametrize("place", ["", "chat"])
def test_channels_about_which_nobody_can_be_asked_are_found(kind: str, place: str) -> None:
    (message,) = found(**options_where(place, f"proxy_{kind}"))
    assert message.id == "realtime.W010"
    assert f"proxy_{kind}" in message.msg
    assert ("namespace 'chat'" if place else "top level") in message.msg
    assert message.hint


def test_every_such_place_is_told() -> None:
    messages = found(
        proxy_subscribe=True,
        namespaces=[{"name": "chat", "proxy_subscribe": True, "proxy_publish": True}],
    )
    assert ids(messages) == ["realtime.W010"] * 3


@pytest.mark.parametrize("kind", ["subscribe", "publish"])
@pytest.mark.parametrize("place", ["", "chat"])
def test_endpoint_can_be_asked(kind: str, place: str) -> None:
    options = options_where(place, f"proxy_{kind}")
    assert found(**options, **{f"proxy_{kind}_endpoint": URL}) == []


def test_endpoint_of_another_kind_cannot() -> None:
    options = {"proxy_rpc_endpoint": URL, "proxy_connect_endpoint": URL}
    assert ids(found(proxy_subscribe=True, **options)) == ["realtime.W010"]


PATTERNS = {
    ("chat:*", "chat"): True,
    ("chat:{room}", "chat"): True,
    ("chat:lobby", "chat"): True,
    ("$chat:*", "chat"): True,
    ("*", "chat"): True,
    ("c*", "chat"): True,
    ("{kind}:{room}", "chat"): True,
    ("other:*", "chat"): False,
    ("chatter:*", "chat"): False,
    ("lobby", "chat"): False,
    ("x*", "chat"): False,
    ("lobby", ""): True,
    ("*", ""): True,
    ("room{number}", ""): True,
    ("chat:*", ""): False,
}
"""Pattern, namespace ("": the top level) → whether it may match a channel there."""


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(("case", "matches"), PATTERNS.items(), ids=str)
@pytest.mark.parametrize("kind", ["subscribe", "publish"])
def test_function_can_be_asked_where_its_pattern_may_match(
    kind: str, case: tuple[str, str], matches: bool
) -> None:
    pattern, place = case
    getattr(hooks, kind)(pattern)(answer)
    messages = found(**options_where(place, f"proxy_{kind}"))
    # for private channels another check has something to say as well
    assert ("realtime.W010" in ids(messages)) is not matches


@pytest.mark.usefixtures("functions")
def test_hooks_of_maps_are_asked_about_maps() -> None:
    namespace = {"name": "seats", "map": "recoverable", "map_publish": "client"}
    options = {"namespaces": [namespace | {"proxy_publish": True}]}
    hooks.publish("seats:{room}")(answer)
    (message,) = found(**options)
    assert (message.id, "@hooks.map_put" in str(message.hint)) == ("realtime.W010", True)
    hooks.map_put("seats:{room}")(answer)
    assert found(**options) == []


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("register", [hooks.subscribe, hooks.publish], ids=["subscribe", "publish"])
@pytest.mark.parametrize(
    ("pattern", "unknown"),
    [
        ("device:*", True),
        ("$device:{name}", True),
        ("chat:*", False),
        ("{kind}:{name}", False),
        ("ch*", False),
        ("lobby", False),
    ],
)
def test_pattern_of_an_unknown_namespace_is_found(
    register: Any, pattern: str, unknown: bool
) -> None:
    register(pattern)(answer)
    messages = found(namespaces=[{"name": "chat"}])
    told = [message for message in messages if message.id == "realtime.W022"]
    assert [repr(pattern) in message.msg for message in told] == [True] * unknown


@pytest.mark.usefixtures("functions")
def test_asgiref_without_choice_of_threads_is_found_where_there_are_hooks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SyncToAsync, "context_to_thread_executor", None)
    without_hooks = found()
    hooks.subscribe("chat:*")(answer)
    assert without_hooks == []
    assert "realtime.W023" in ids(found(namespaces=[{"name": "chat"}]))
