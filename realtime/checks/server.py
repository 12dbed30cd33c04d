"""Checks of the ASGI server and of what Django reports."""

from __future__ import annotations

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.utils.module_loading import import_string

from realtime.config.sources import Report
from realtime.error_reports import SecretsFilter, has_password
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


def check_error_reports(report: Report) -> list[CheckMessage]:
    """W024: error pages show the password in a URL of Redis."""
    if report.sources.origins.get("redis_url") != "settings":
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
                'Set DEFAULT_EXCEPTION_REPORTER_FILTER = "realtime.error_reports.SecretsFilter", or'
                " a subclass of it."
            ),
            id="realtime.W024",
        )
    ]
