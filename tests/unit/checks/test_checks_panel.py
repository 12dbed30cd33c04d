"""System checks of the panel by itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.test import override_settings

from tests.server import ROOT
from tests.unit.checks.system_checks import SECURE, found, ids

ON = {**SECURE, "admin": True, "admin_password": "p" * 12, "admin_secret": "s" * 32}
WITHOUT_ADMIN = """
import json
import django
from django.conf import settings
from django.core.checks import run_checks
settings.configure(
    INSTALLED_APPS=[
        "django.contrib.auth", "django.contrib.contenttypes", "realtime", "admin_panel"
    ],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
)
django.setup()
print(json.dumps([message.id for message in run_checks()]))
"""

WITH_PANEL = override_settings(ROOT_URLCONF="messaging_project.urls")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, [], id="nothing wrong"),
        pytest.param({"admin_password": ""}, ["realtime.W014"], id="no password"),
        pytest.param({"admin_secret": ""}, ["realtime.W014"], id="no secret"),
        pytest.param({"admin_password": "p" * 11}, ["realtime.W015"], id="short password"),
        pytest.param({"admin_secret": "s" * 31}, ["realtime.W015"], id="short secret"),
        ({"admin_password": "p", "admin_secret": "s"}, ["realtime.W015"] * 2),
        pytest.param({"admin_insecure": True}, ["realtime.E022"], id="insecure"),
        ({"admin_insecure": True, "admin_insecure_in_production": True}, ["realtime.W004"]),
        ({"admin_insecure_in_production": True}, ["realtime.W060"]),
    ],
)
def test_options_of_the_panel_are_checked(options: dict[str, object], expected: list[str]) -> None:
    with WITH_PANEL:
        assert ids(found(**{**ON, **options})) == expected


@pytest.mark.parametrize("option", ["admin_password", "admin_secret"])
def test_secrets_that_are_short_are_not_shown(option: str) -> None:
    with WITH_PANEL:
        (message,) = found(**{**ON, option: "hush"})
    assert "hush" not in str(message)
    assert option in message.msg


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"admin_insecure": True}, id="insecure"),
        pytest.param({"admin_password": "p"}, id="short password"),
    ],
)
def test_development_may_do_without_protection(options: dict[str, object]) -> None:
    with WITH_PANEL, override_settings(DEBUG=True):
        assert found(**{**ON, **options}) == []


def test_panel_that_is_off_is_not_checked() -> None:
    options = {"admin": False, "admin_password": "p", "admin_insecure": True}
    # they have no effect
    assert ids(found(**{**ON, **options})) == ["realtime.W060"] * 2


def test_urls_that_are_missing_are_told() -> None:
    with override_settings(ROOT_URLCONF="tests.site.urls"):
        (message,) = found(**ON)
    assert message.id == "realtime.W016"
    assert "realtime.admin_panel.standalone.urls" in str(message.hint)


def test_panel_without_the_admin_is_found() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", WITHOUT_ADMIN], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert "realtime_admin.E002" in json.loads(finished.stdout)
