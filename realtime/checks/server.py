"""Checks of the ASGI server and of what Django reports."""

from __future__ import annotations

from importlib.metadata import distributions

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import import_string

from realtime.checks import asgi_source
from realtime.checks.panel import is_left_out
from realtime.checks.table import Found, check
from realtime.config.error_reports import SecretsFilter, has_password
from realtime.config.sources import Report
from realtime.transports.servers import daphne


@check(
    "realtime.W005",
    "Use a version that this package is tested with, see requirements.txt.",
)
def check_daphne(report: Report) -> Found:
    """W005: unknown version of daphne; no disconnect advice, and the root path is ignored."""
    if daphne.is_loaded() and (reason := daphne.problem()) is not None:
        yield (
            "This version of daphne sends clients no disconnect advice, and the path at which it"
            f" mounts the site is ignored: {reason}."
        )


@check(
    "realtime.E027",
    "pip uninstall realtime, then pip install --force-reinstall --no-deps this package"
    " (django-realtime-messaging). One environment can hold only one of them.",
)
def check_other_package(report: Report) -> Found:
    """E027: the package `realtime` from PyPI is installed into the same place."""
    if any(distributions(name="realtime")):
        yield "Another package with the import name realtime is installed: files of both are mixed."


@check(
    "realtime.W024",
    'Set DEFAULT_EXCEPTION_REPORTER_FILTER = "realtime.config.error_reports.SecretsFilter", or a'
    " subclass of it.",
)
def check_error_reports(report: Report) -> Found:
    """W024: error pages show the password in a URL of Redis."""
    is_setting = report.sources.origins.get("redis_url") in ("settings", "defaults")
    if not is_setting or not has_password(report.config.redis_url):
        return
    try:
        hides = issubclass(import_string(settings.DEFAULT_EXCEPTION_REPORTER_FILTER), SecretsFilter)
    except (ImportError, TypeError):
        return  # Django's own error
    if not hides:
        yield "Django's error pages and error e-mails show the password in redis_url."


@check(
    "realtime.W031",
    'Set it to the application of your asgi.py, as "mysite.asgi.application", and wrap that one:'
    " application = realtime.asgi.application(application).",
)
def check_asgi_application(report: Report) -> Found:
    """W031: `ASGI_APPLICATION` is missing, or names an application without the service."""
    path = getattr(settings, "ASGI_APPLICATION", None)
    if mistake := asgi_source.mistake_in(path) if path else "is not set":
        yield f"The setting ASGI_APPLICATION {mistake}: runserver does not serve the service."


@check(
    "realtime.W032",
    "Put it first in INSTALLED_APPS, or silence realtime.W032 if you start another ASGI server.",
)
def check_runserver(report: Report) -> Found:
    """W032: with DEBUG, `daphne` is not in INSTALLED_APPS: runserver serves no WebSockets."""
    if settings.DEBUG and not apps.is_installed("daphne"):
        yield "daphne is not in INSTALLED_APPS, so runserver serves no WebSockets."


@check(
    "realtime.W033",
    'Include it: path("api", include("realtime.api.urls")), and add realtime.api and'
    " rest_framework to INSTALLED_APPS. Or remove api_key.",
)
def check_api_urls(report: Report) -> Found:
    """W033: `api_key` is set, but the site does not include the URL of the server API."""
    config = report.config
    if config.api_key and not config.api_disable and is_left_out("realtime_api:commands"):
        yield "api_key is set, but the site does not include the URL of the server API."
