"""What Django's reports of errors show of the secrets of the service."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from django.test import RequestFactory
from django.views import debug
from django.views.debug import ExceptionReporter
from pytest_django import Settings

from realtime.config import sources
from realtime.config.error_reports import SecretsFilter

SECRET = "hush-hush-hush"
URL = f"redis://me:{SECRET}%40@redis.example.org:6379/0"


class Strange:
    def __repr__(self) -> str:
        raise ValueError("no repr")


@pytest.fixture(params=[True, False], ids=["DEBUG", "e-mail"])
def _reports(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEBUG = request.param
    settings.REALTIME = {"redis_url": URL, "api_key": f"key-{SECRET}", "admin_password": "no"}
    settings.CHANNEL_LAYERS = {"default": {"CONFIG": {"hosts": [URL]}}}
    settings.CACHES = {"default": {"LOCATION": f"rediss://:{SECRET}@cache.example.org"}}
    monkeypatch.setattr(debug, "get_default_exception_reporter_filter", SecretsFilter)


def report() -> str:
    """Both forms of a report about an error that happens here."""
    options = {"redis_url": URL}  # noqa: F841 - all of them are shown
    parts = [SimpleNamespace(address=(URL, 1)), f"key-{SECRET}", SECRET + "@"]  # noqa: F841
    strange, number, text = Strange(), 12345, "http://shown.example.org/a:b@c"  # noqa: F841
    try:
        raise RuntimeError("an error")
    except RuntimeError:
        reporter = ExceptionReporter(RequestFactory().get("/"), *sys.exc_info())
    return reporter.get_traceback_html() + reporter.get_traceback_text()


@pytest.mark.usefixtures("_reports")
def test_reports_hide_secrets_in_settings_and_variables() -> None:
    shown = report()
    assert SECRET not in shown
    assert "redis.example.org:6379" in shown
    assert "cache.example.org" in shown


@pytest.mark.usefixtures("_reports")
def test_reports_show_everything_else() -> None:
    shown = report()
    for text in ("an error", "12345", "shown.example.org/a:b@c", "no repr"):
        assert text in shown


@pytest.mark.usefixtures("_reports")
def test_report_is_made_while_the_options_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("broken settings")

    monkeypatch.setattr(sources, "gather", broken)

    assert URL not in report()
