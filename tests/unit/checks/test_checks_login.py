"""System checks of what lets clients in: login sessions, origins, the secret of tokens."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.test import override_settings

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
    [("k" * 31, ["realtime.W012"]), ("k" * 32, []), ("é" * 16, []), ("", [])],
    ids=["31 bytes", "32 bytes", "32 bytes in 16 characters", "none"],
)
def test_short_secret_is_found(secret: str, expected: list[str]) -> None:
    assert ids(found(token_hmac_secret_key=secret)) == expected


def test_short_secret_is_for_development() -> None:
    with override_settings(DEBUG=True):
        assert found(token_hmac_secret_key="short") == []


ENDPOINT = {"token_hmac_secret_key": SECRET, "proxy_connect_endpoint": "http://127.0.0.1/connect"}


@pytest.mark.parametrize("origins", [{}, {"allowed_origins": ["*"]}], ids=["not set", "all"])
def test_connect_endpoint_that_gets_cookies_from_any_page_is_found(origins: dict[str, Any]) -> None:
    assert ids(found(**ENDPOINT, **origins)) == ["realtime.W013"]


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
