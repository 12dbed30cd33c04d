"""System checks of the views for tokens and of functions that nobody would ask."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.core.checks import CheckMessage
from django.test import override_settings

from realtime import checks, hooks
from tests.processes import run_python
from tests.server import ROOT
from tests.unit.checks import system_checks
from tests.unit.checks.system_checks import ids, ids_of_problems

pytestmark = pytest.mark.usefixtures("functions")

KEY = {"token_hmac_secret_key": "k" * 32, "namespaces": [{"name": "room"}]}
VIEWS = "tests.unit.auth.site_with_views"
LOGIN = "django.contrib.auth.middleware.AuthenticationMiddleware"


class OurLogin(AuthenticationMiddleware):
    """What a site may have in its place."""


def found(
    urls: str = VIEWS, options: Mapping[str, object] = KEY, **site: Any
) -> list[CheckMessage]:
    with override_settings(ROOT_URLCONF=urls, **site):
        return system_checks.found(**options)


def without_login(*instead: str) -> list[str]:
    return [*(name for name in settings.MIDDLEWARE if name != LOGIN), *instead]


JWKS = {"token_jwks_public_endpoint": "https://example.org/jwks"}


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ({}, []),
        ({"options": {"client_anonymous": True}}, ["realtime.E030"]),
        # a key for verification, whose private half the service has nowhere
        ({"options": JWKS}, ["realtime.E030"]),
        ({"options": {**KEY, **JWKS}}, ["realtime.E031", "realtime.W060"]),
        ({"MIDDLEWARE": without_login()}, ["realtime.W020"]),
        ({"MIDDLEWARE": without_login(f"{__name__}.OurLogin")}, []),
        # one that cannot be imported: Django tells of it where it matters
        ({"MIDDLEWARE": without_login("nowhere.Login")}, ["realtime.W020"]),
    ],
)
def test_views_need_a_key_and_a_login(site: dict[str, Any], expected: list[str]) -> None:
    assert sorted(map(str, ids(found(**site)))) == expected


@pytest.mark.parametrize("name", ["audience", "issuer"])
@pytest.mark.parametrize(
    ("value", "expected"), [("", ["realtime.E042"]), ("b", ["realtime.E042"]), ("a1", [])]
)
def test_views_that_cannot_name_what_the_service_expects_are_found(
    name: str, value: str, expected: list[str]
) -> None:
    options = {f"token_{name}_regex": "^a", f"token_{name}": value}
    assert ids(found(options={**KEY, **options})) == expected


def test_site_without_the_views_needs_none_of_that() -> None:
    assert found("tests.site.urls", {"client_anonymous": True}, MIDDLEWARE=without_login()) == []


def test_every_function_for_private_channels_that_nobody_asks_is_found() -> None:
    @hooks.subscribe("$room:{room}", "room:{room}", "$staff", "*")
    def allow(request: Any) -> None:
        pass

    messages = found("tests.site.urls")

    assert ids(messages) == ["realtime.W021"] * 2
    assert "'$room:{room}'" in messages[0].msg
    assert "'$staff'" in messages[1].msg


def test_functions_for_private_channels_are_asked_by_the_views() -> None:
    @hooks.subscribe("$room:{room}")
    def allow(request: Any) -> None:
        pass

    assert found() == []


@pytest.mark.parametrize(("prefix", "expected"), [("!", ["realtime.W021"]), ("", [])])
def test_prefix_of_private_channels_is_the_option(prefix: str, expected: list[str]) -> None:
    @hooks.subscribe("!room", "$room")
    def allow(request: Any) -> None:
        pass

    assert ids(found("tests.site.urls", {**KEY, "channel_private_prefix": prefix})) == expected


@pytest.mark.parametrize("kind", ["token", "subscription_token"])
def test_ready_site_with_a_key_set_has_nothing_to_mend(tmp_path: Path, kind: str) -> None:
    environment = {**os.environ, "DJANGO_DATA_DIR": str(tmp_path)}
    environment["DJANGO_SETTINGS_MODULE"] = "messaging_project.settings"
    environment[f"SERVICE_{kind.upper()}_JWKS_PUBLIC_ENDPOINT"] = "https://example.org/jwks"
    done = run_python(["manage.py", "check", "--fail-level", "WARNING"], ROOT, environment)
    assert done.returncode == 0, done.stderr


def test_every_id_is_given_by_one_check() -> None:
    given = Counter(ids_of_problems())
    for function in (*checks.CHECKS, *checks.DATABASE_CHECKS, *checks.OF_PARTS):
        given.update(set(re.findall(r'"(realtime\.[EW][0-9]{3})"', inspect.getsource(function))))

    assert set(given.values()) == {1}
    assert sorted(given) == [
        *(f"realtime.E{number:03}" for number in range(1, 29)),
        *("realtime.E030", "realtime.E031"),
        *(f"realtime.E{number:03}" for number in range(40, 49)),
        *(f"realtime.E{number:03}" for number in (50, 52, 53, 54, 56, 57)),
        *("realtime.E060", "realtime.E061", "realtime.E062"),
        *(f"realtime.W{number:03}" for number in range(1, 18)),
        *(f"realtime.W{number:03}" for number in range(20, 35) if number != 25),
        "realtime.W040",
        "realtime.W041",
        *("realtime.W050", "realtime.W051", "realtime.W056"),
        *(f"realtime.W{number:03}" for number in range(60, 66)),
    ]
