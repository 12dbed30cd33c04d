"""Checks of the standalone panel: the options `admin*`."""

from __future__ import annotations

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.urls import NoReverseMatch, reverse

from realtime.auth.keys import MIN_SECRET_BYTES
from realtime.config.sources import Report

PASSWORD_LEAST_BYTES = 12
"""An attacker can try some ten million passwords a year: 200 in ten minutes."""

PANEL_URL_NAME = "realtime_panel:overview"

_PANEL_SECRETS = {"admin_password": PASSWORD_LEAST_BYTES, "admin_secret": MIN_SECRET_BYTES}
"""Option → its least length in bytes."""


def check_insecure_panel(report: Report) -> list[CheckMessage]:
    """E022: `admin_insecure` without DEBUG."""
    config = report.config
    if not config.admin or not config.admin_insecure or settings.DEBUG:
        return []
    if config.admin_insecure_in_production:
        return []
    return [
        checks.Error(
            "admin_insecure has an effect with DEBUG only: the panel asks for a password.",
            hint="Remove it, or turn admin_insecure_in_production on if something else, such as a"
            " reverse proxy, protects the panel.",
            id="realtime.E022",
        )
    ]


def check_panel_password(report: Report) -> list[CheckMessage]:
    """W014: `admin` without `admin_password` or `admin_secret`."""
    config = report.config
    missing = [name for name in _PANEL_SECRETS if not getattr(config, name)]
    if not config.admin or config.admin_insecure or not missing:
        return []
    return [
        checks.Warning(
            f"admin is on without {' and '.join(missing)}: only users of Django can sign in to"
            " the panel.",
            hint="Set both admin_password and admin_secret, or silence realtime.W014 if you want"
            " no shared password.",
            id="realtime.W014",
        )
    ]


def check_panel_secrets(report: Report) -> list[CheckMessage]:
    """W015: `admin_password` or `admin_secret` is short."""
    config = report.config
    if settings.DEBUG or not config.admin:
        return []
    return [
        checks.Warning(
            f"{name} is shorter than {least} bytes.",
            hint="Attackers can try passwords, and with the secret they need none. To make a new"
            " one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            id="realtime.W015",
        )
        for name, least in _PANEL_SECRETS.items()
        if 0 < len(getattr(config, name).encode()) < least
    ]


def check_panel_urls(report: Report) -> list[CheckMessage]:
    """W016: `admin` is on, but the site does not include the panel's URLs."""
    if not report.config.admin or not getattr(settings, "ROOT_URLCONF", None):
        return []
    try:
        reverse(PANEL_URL_NAME)
    except NoReverseMatch:
        return [
            checks.Warning(
                "admin is on, but the site does not include the URLs of the panel.",
                hint='Include them: path("", include("realtime.admin_panel.standalone.urls")),'
                " before the URLs of Django's admin.",
                id="realtime.W016",
            )
        ]
    return []
