"""The doctor at the settings of a site: nobody is asked, so it runs in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings

from tests.live.tools.command import KEYS, Findings, examine_alone, look

pytestmark = pytest.mark.django_db  # the doctor counts pending rows


def visit(settings: Settings, options: Mapping[str, Any], **others: Any) -> Findings:
    """What the doctor finds in a site with these options and settings."""
    settings.REALTIME = dict(options)
    for name, value in others.items():
        setattr(settings, name, value)
    return look()


# how clients get in


@pytest.mark.parametrize(
    "options",
    [
        {"token_hmac_secret_key": "x" * 32},
        {"token_jwks_public_endpoint": "https://example.org/keys"},
        {"session_authentication": True},
        {"proxy_connect_endpoint": "https://example.org/connect"},
        {"client_anonymous": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_site_with_a_way_in_passes(settings: Settings, options: dict[str, Any]) -> None:
    assert visit(settings, options)["ways in"]["status"] == "ok"


def test_site_without_a_way_in_fails(tmp_path: Path) -> None:
    """In a process of its own, where nobody registered hooks."""
    found = examine_alone(tmp_path, {"token_hmac_secret_key": ""})
    assert found["ways in"]["status"] == "fail"
    assert "session_authentication" in found["ways in"]["advice"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"token_hmac_secret_key": "x" * 32, "api_key": "k" * 16}, "ok"),
        ({"token_hmac_secret_key": "x" * 31, "api_key": "k" * 16}, "warn"),
        ({"token_hmac_secret_key": "x" * 32, "api_key": "k" * 15}, "warn"),
        ({"client_anonymous": True}, "ok"),
    ],
    ids=["long", "short secret", "short key", "none"],
)
def test_short_secrets_are_noticed_and_not_shown(
    settings: Settings, options: dict[str, Any], status: str
) -> None:
    found = visit(settings, options)["secrets"]
    assert found["status"] == status
    assert "xxx" not in str(found)
    assert "kkk" not in str(found)


@pytest.mark.parametrize(
    ("debug", "options", "status"),
    [
        (False, {}, "ok"),
        (True, {}, "warn"),
        (True, {"client_insecure": True}, "warn"),
        (False, {"client_insecure": True}, "fail"),
        (False, {"api_insecure": True}, "fail"),
    ],
)
def test_missing_protection_is_weighed_by_debug(
    settings: Settings, debug: bool, options: dict[str, Any], status: str
) -> None:
    assert visit(settings, {**KEYS, **options}, DEBUG=debug)["debug"]["status"] == status


# origins


@pytest.mark.parametrize(
    ("patterns", "hosts", "trusted", "status"),
    [
        (None, ["example.org"], [], "ok"),
        ([], ["example.org"], [], "warn"),
        (["https://example.org"], ["example.org"], ["https://example.org"], "ok"),
        (["http://example.org"], ["example.org"], [], "ok"),
        (["https://example.org"], ["example.org", "other.example"], [], "warn"),
        (["https://example.org"], ["example.org"], ["https://other.example"], "warn"),
        (["https://*.example.org"], [".example.org"], ["https://*.example.org"], "ok"),
        (["https://example.org"], [".example.org"], [], "warn"),
        (["https://example.org"], ["*", "localhost", "127.0.0.1", "[::1]"], [], "ok"),
    ],
)
def test_origins_are_compared_with_the_hosts_of_the_site(
    settings: Settings,
    patterns: list[str] | None,
    hosts: list[str],
    trusted: list[str],
    status: str,
) -> None:
    options = KEYS if patterns is None else {**KEYS, "allowed_origins": patterns}
    found = visit(settings, options, ALLOWED_HOSTS=hosts, CSRF_TRUSTED_ORIGINS=trusted)
    assert found["origins"]["status"] == status


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"session_authentication": True, "allowed_origins": ["*"]}, "fail"),
        ({"session_authentication": True, "allowed_origins": ["https://*"]}, "fail"),
        ({"session_authentication": True, "allowed_origins": ["https://*.example.org"]}, "ok"),
        ({"session_authentication": True}, "ok"),
        ({"allowed_origins": ["*"]}, "ok"),
    ],
    ids=str,
)
def test_sessions_are_not_for_pages_of_any_origin(
    settings: Settings, options: dict[str, Any], status: str
) -> None:
    found = visit(settings, {**KEYS, **options}, ALLOWED_HOSTS=["www.example.org"])
    assert found["origins"]["status"] == status


# the database


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
@pytest.mark.parametrize(("age", "status"), [(0, "ok"), (600, "warn"), (None, "warn")])
def test_connections_that_hooks_would_keep_are_noticed(
    settings: Settings, age: int | None, status: str
) -> None:
    databases = {"default": {**django_settings.DATABASES["default"], "CONN_MAX_AGE": age}}
    found = visit(settings, {**KEYS, "session_authentication": True}, DATABASES=databases)
    assert found["database"]["status"] == status


def test_site_without_hooks_has_no_connections_to_keep(tmp_path: Path) -> None:
    assert examine_alone(tmp_path, {})["database"]["status"] == "skip"


# the system checks


@pytest.mark.parametrize(
    ("options", "status"), [({}, "ok"), ({"publish": True}, "warn"), ({"presense": True}, "fail")]
)
def test_system_checks_are_summed_up(
    settings: Settings, options: dict[str, Any], status: str
) -> None:
    found = visit(settings, {**KEYS, **options})["configuration"]
    assert found["status"] == status
    assert ("checkconfig" in found["advice"]) is (status != "ok")
