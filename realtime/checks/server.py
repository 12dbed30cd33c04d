"""Checks of the ASGI server and of what Django reports."""

from __future__ import annotations

from importlib.metadata import distributions

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from realtime.checks import asgi_source
from realtime.config.error_reports import SecretsFilter, has_password
from realtime.config.sources import Report
from realtime.transports.servers import daphne


def check_daphne(report: Report) -> list[CheckMessage]:
    """W005: unknown version of daphne; no disconnect advice, and the root path is ignored."""
    if not daphne.is_loaded() or (reason := daphne.problem()) is None:
        return []
    return [
        checks.Warning(
            "This version of daphne sends clients no disconnect advice, and the path at which it"
            f" mounts the site is ignored: {reason}.",
            hint="Use a version that this package is tested with, see requirements.txt.",
            id="realtime.W005",
        )
    ]


def check_asgi_application(report: Report) -> list[CheckMessage]:
    """W031: `ASGI_APPLICATION` is missing, or names an application without the service."""
    path = getattr(settings, "ASGI_APPLICATION", None)
    mistake = asgi_source.mistake_in(path) if path else "is not set"
    if not mistake:
        return []
    return [
        checks.Warning(
            f"The setting ASGI_APPLICATION {mistake}: runserver does not serve the service.",
            hint='Set it to the application of your asgi.py, as "mysite.asgi.application", and wrap'
            " that one: application = realtime.asgi.application(application).",
            id="realtime.W031",
        )
    ]


def check_runserver(report: Report) -> list[CheckMessage]:
    """W032: with DEBUG, `daphne` is not in INSTALLED_APPS: runserver serves no WebSockets."""
    if not settings.DEBUG or apps.is_installed("daphne"):
        return []
    return [
        checks.Warning(
            "daphne is not in INSTALLED_APPS, so runserver serves no WebSockets.",
            hint="Put it first in INSTALLED_APPS, or silence realtime.W032 if you start another"
            " ASGI server.",
            id="realtime.W032",
        )
    ]


def check_api_urls(report: Report) -> list[CheckMessage]:
    """W033: `api_key` is set, but the site does not include the URL of the server API."""
    config = report.config
    if not config.api_key or config.api_disable or not getattr(settings, "ROOT_URLCONF", None):
        return []
    try:
        reverse("realtime_api:commands")
    except NoReverseMatch:
        return [
            checks.Warning(
                "api_key is set, but the site does not include the URL of the server API.",
                hint='Include it: path("api", include("realtime.api.urls")), and add realtime.api'
                " and rest_framework to INSTALLED_APPS. Or remove api_key.",
                id="realtime.W033",
            )
        ]
    return []


def check_other_package(report: Report) -> list[CheckMessage]:
    """E027: the package `realtime` from PyPI is installed into the same place."""
    if not any(distributions(name="realtime")):
        return []
    return [
        checks.Error(
            "Another package with the import name realtime is installed: files of both are mixed.",
            hint="pip uninstall realtime, then pip install --force-reinstall --no-deps this package"
            " (django-realtime-messaging). One environment can hold only one of them.",
            id="realtime.E027",
        )
    ]


def check_error_reports(report: Report) -> list[CheckMessage]:
    """W024: error pages show the password in a URL of Redis."""
    if report.sources.origins.get("redis_url") not in ("settings", "defaults"):
        return []
    if not has_password(report.config.redis_url):
        return []
    try:
        if issubclass(import_string(settings.DEFAULT_EXCEPTION_REPORTER_FILTER), SecretsFilter):
            return []
    except (ImportError, TypeError):
        return []  # Django's own error
    return [
        checks.Warning(
            "Django's error pages and error e-mails show the password in redis_url.",
            hint=(
                "Set DEFAULT_EXCEPTION_REPORTER_FILTER ="
                ' "realtime.config.error_reports.SecretsFilter", or a subclass of it.'
            ),
            id="realtime.W024",
        )
    ]
