"""Checks of the standalone panel: the options `admin*`."""

from __future__ import annotations

from django.conf import settings

from realtime.auth.keys import MIN_SECRET_BYTES
from realtime.checks.table import Found, check
from realtime.config.sources import Report
from realtime.pages.page_config import find_url

PASSWORD_LEAST_BYTES = 12
"""An attacker can try some ten million passwords a year: 200 in ten minutes."""

_PANEL_SECRETS = {"admin_password": PASSWORD_LEAST_BYTES, "admin_secret": MIN_SECRET_BYTES}
"""Option → its least length in bytes."""


@check(
    "realtime.E022",
    "Remove it, or turn admin_insecure_in_production on if something else, such as a reverse"
    " proxy, protects the panel.",
)
def check_insecure_panel(report: Report) -> Found:
    """E022: `admin_insecure` without DEBUG."""
    config = report.config
    is_meant = settings.DEBUG or config.admin_insecure_in_production
    if config.admin and config.admin_insecure and not is_meant:
        yield "admin_insecure has an effect with DEBUG only: the panel asks for a password."


@check(
    "realtime.W014",
    "Set both admin_password and admin_secret, or silence realtime.W014 if you want no shared"
    " password.",
)
def check_panel_password(report: Report) -> Found:
    """W014: `admin` without `admin_password` or `admin_secret`."""
    config = report.config
    missing = [name for name in _PANEL_SECRETS if not getattr(config, name)]
    if config.admin and not config.admin_insecure and missing:
        yield (
            f"admin is on without {' and '.join(missing)}: only users of Django can sign in to the"
            " panel."
        )


@check(
    "realtime.W015",
    "Attackers can try passwords, and with the secret they need none. To make a new one: python -c"
    " 'import secrets; print(secrets.token_urlsafe(32))'",
)
def check_panel_secrets(report: Report) -> Found:
    """W015: `admin_password` or `admin_secret` is short."""
    if settings.DEBUG or not report.config.admin:
        return
    for name, least in _PANEL_SECRETS.items():
        if 0 < len(getattr(report.config, name).encode()) < least:
            yield f"{name} is shorter than {least} bytes."


@check(
    "realtime.W016",
    'Include them: path("", include("realtime.admin_panel.standalone.urls")), before the URLs of'
    " Django's admin.",
)
def check_panel_urls(report: Report) -> Found:
    """W016: `admin` is on, but the site does not include the panel's URLs."""
    if report.config.admin and is_left_out("realtime_panel:overview"):
        yield "admin is on, but the site does not include the URLs of the panel."


def is_left_out(url_name: str) -> bool:
    """Return whether the URLs of the site, which has some, do not include this one."""
    return bool(getattr(settings, "ROOT_URLCONF", None)) and find_url(url_name) is None
