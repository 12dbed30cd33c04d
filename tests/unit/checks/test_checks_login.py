"""System checks of what lets clients in: login sessions, origins, the secret of tokens."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.test import override_settings

from realtime.answers import setup
from realtime.checks.access import HTTP_TRANSPORTS
from realtime.hooks.registry import registry
from tests.unit.checks.system_checks import found, ids

SECRET = "k" * 32
SESSIONS: dict[str, Any] = {"token_hmac_secret_key": SECRET, "session_authentication": True}


@pytest.mark.parametrize("missing", ["django.contrib.auth", "django.contrib.sessions"])
def test_session_authentication_needs_what_sessions_are_made_of(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = apps.is_installed
    monkeypatch.setattr(apps, "is_installed", lambda name: name != missing and installed(name))
    messages = [message for message in found(**SESSIONS) if message.id == "realtime.E021"]
    assert len(messages) == 1
    assert missing in messages[0].msg
    assert "realtime.E021" not in ids(found(token_hmac_secret_key=SECRET))


@pytest.mark.parametrize(
    "patterns", [["*"], ["https://*"], ["http?://*", "https://a.example"], ["*://*"]]
)
def test_sessions_that_any_site_can_use_are_found(patterns: list[str]) -> None:
    assert ids(found(**SESSIONS, allowed_origins=patterns)) == ["realtime.W011"]


@pytest.mark.parametrize("patterns", [None, [], ["https://example.org", "https://*.example.org"]])
def test_sessions_of_named_origins_are_no_mistake(patterns: list[str] | None) -> None:
    options = {} if patterns is None else {"allowed_origins": patterns}
    assert found(**SESSIONS, **options) == []


def test_any_origin_is_no_mistake_where_clients_bring_tokens() -> None:
    assert found(token_hmac_secret_key=SECRET, allowed_origins=["*"]) == []


@pytest.mark.parametrize(
    ("secret", "expected"),
    [("k" * 31, ["realtime.W012"]), ("k" * 32, []), ("é" * 16, []), ("", ["realtime.W029"])],
    ids=["31 bytes", "32 bytes", "32 bytes in 16 characters", "none"],
)
def test_short_secret_is_found(secret: str, expected: list[str]) -> None:
    assert ids(found(token_hmac_secret_key=secret)) == expected


def test_short_secret_before_is_found() -> None:
    messages = found(token_hmac_secret_key="k" * 32, token_hmac_previous_secret_key="k" * 31)
    assert ids(messages) == ["realtime.W012"]
    assert "token_hmac_previous_secret_key" in messages[0].msg


def test_short_secret_is_for_development() -> None:
    with override_settings(DEBUG=True):
        assert found(token_hmac_secret_key="short") == []


ENDPOINT = {"token_hmac_secret_key": SECRET, "proxy_connect_endpoint": "http://127.0.0.1/connect"}


ANY_PAGE = {"allowed_origins": ["*"]}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        (ANY_PAGE, ["realtime.W013"]),
        (ANY_PAGE | {"proxy_connect_http_headers": ["X-Id"]}, []),
        (ANY_PAGE | {"proxy_connect_http_headers": ["COOKIE"]}, ["realtime.W013"]),
    ],
    ids=str,
)
def test_connect_endpoint_that_gets_cookies_from_any_page_is_found(
    options: dict[str, Any], expected: list[str]
) -> None:
    assert ids(found(**ENDPOINT, **options)) == expected


def reads_cookies(request: Any) -> Any:
    def inner() -> Any:
        return request.cookies.get("key")

    return inner()


def reads_data(request: Any) -> Any:
    return request.data


class Reader:
    def __call__(self, request: Any) -> Any:
        return request.headers


@functools.wraps(reads_cookies)
def wrapper(request: Any) -> Any:
    return reads_cookies(request)


NAMED = {"allowed_origins": ["https://example.org"]}


@pytest.mark.parametrize(
    ("function", "options", "expected"),
    [
        (reads_cookies, {}, []),
        (reads_cookies, ANY_PAGE, ["realtime.W026"]),
        (wrapper, ANY_PAGE, ["realtime.W026"]),
        (reads_cookies, NAMED, []),
        (reads_data, ANY_PAGE, []),
        (functools.partial(reads_cookies), ANY_PAGE, ["realtime.W026"]),
        (functools.partial(reads_data), ANY_PAGE, []),
        (Reader(), ANY_PAGE, ["realtime.W026"]),
        (print, ANY_PAGE, []),
        (setup.describe, ANY_PAGE, []),
        (setup.stop, ANY_PAGE, []),
    ],
)
@pytest.mark.parametrize("kind", ["single", "methods"])
def test_hook_that_gets_cookies_from_any_page_is_found(
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    function: Any,
    options: dict[str, Any],
    expected: list[str],
) -> None:
    monkeypatch.setattr(registry, kind, {"message": function})
    assert ids(found(token_hmac_secret_key=SECRET, **options)) == expected


HISTORY = {"history_size": 1, "history_lifetime": 1, "history_disable_for_client": True}


@pytest.mark.parametrize("name", ["history_recover", "force_recovery", "allow_recovery"])
@pytest.mark.parametrize(("recover", "expected"), [(True, ["realtime.W027"]), (False, [])])
def test_history_that_clients_can_recover_is_found(
    name: str, recover: bool, expected: list[str]
) -> None:
    options = {**HISTORY, name: recover}
    assert ids(found(token_hmac_secret_key=SECRET, **options)) == expected
    assert (
        ids(found(token_hmac_secret_key=SECRET, namespaces=[{"name": "chat", **options}]))
        == expected
    )


def test_connect_endpoint_behind_named_origins_is_no_mistake() -> None:
    assert found(**ENDPOINT, allowed_origins=["https://example.org"]) == []


PERSONAL: dict[str, Any] = {"token_hmac_secret_key": SECRET, "user_subscribe_to_personal": True}


@pytest.mark.parametrize(
    ("key", "options", "expected"),
    [
        (models.CharField(), PERSONAL, ["realtime.W017"]),
        (models.EmailField(), PERSONAL, ["realtime.W017"]),
        (models.CharField(), {"token_hmac_secret_key": SECRET}, []),
        (models.SlugField(), PERSONAL, []),
        (models.UUIDField(), PERSONAL, []),
        (models.BigAutoField(), PERSONAL, []),
    ],
    ids=["text", "email", "without personal channels", "slug", "UUID", "number"],
)
def test_primary_keys_that_no_channel_can_list_are_found(
    monkeypatch: pytest.MonkeyPatch,
    key: models.Field[Any, Any],
    options: dict[str, Any],
    expected: list[str],
) -> None:
    monkeypatch.setattr(User._meta, "pk", key)
    assert ids(found(**options)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"allowed_origins": ["https://a.example"]}, False),
        ({"allowed_origins": []}, False),
        ({"session_authentication": False, "client_anonymous": True}, False),
        ({"session_authentication": False, **ENDPOINT}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", HTTP_TRANSPORTS)
def test_transport_for_pages_of_one_host_is_found(
    name: str, given: dict[str, Any], expected: bool
) -> None:
    messages = found(**{**SESSIONS, name: True, **given})
    assert ("realtime.W040" in ids(messages)) is expected
