"""What strangers may do, and whose pages may connect."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.core import checks

from realtime.checks.base import Messages
from realtime.config import origins
from realtime.config.sources import Given

_SOME_ORIGIN = "https://somewhere.invalid"
"""An origin that nobody owns."""


def check_publish_permission(given: Given) -> Messages:
    """W003: clients may publish into channels that they cannot subscribe to."""
    config = given.config
    places = {"the top level": config.channel} | {
        f"namespace {name!r}": options for name, options in config.namespaces.items()
    }
    return [
        checks.Warning(
            f"Any client may publish into any channel of {place}, private ones included.",
            hint="Set subscribe_to_publish, or silence realtime.W003 if that is intended.",
            id="realtime.W003",
        )
        for place, options in places.items()
        if options.publish and not options.subscribe_to_publish
    ]


def check_insecure(given: Given) -> Messages:
    """W004: `client_insecure`, `api_insecure` or `admin_insecure` is on without DEBUG."""
    if settings.DEBUG:
        return []
    config = given.config
    # without the second option it does not hold, see E022
    open_panel = config.admin and config.admin_insecure and config.admin_insecure_in_production
    return [
        checks.Warning(
            f"{option} is on: {danger}.",
            hint="Turn it off outside of development.",
            id="realtime.W004",
        )
        for option, is_on, danger in (
            (
                "client_insecure",
                config.client_insecure,
                "anyone may connect, subscribe and publish",
            ),
            ("api_insecure", config.api_insecure, "anyone who reaches the server API may use it"),
            ("admin_insecure", open_panel, "anyone who reaches the panel may do everything in it"),
        )
        if is_on
    ]


def check_origins(given: Given) -> Messages:
    """W006: a pattern in `allowed_origins` never matches."""
    return [
        checks.Warning(
            f"The pattern {pattern!r} in allowed_origins never matches.",
            hint="Origins are compared in lower case; write the pattern so.",
            id="realtime.W006",
        )
        for pattern in given.config.allowed_origins or ()
        if pattern != pattern.lower()
    ]


def check_believed_origins(given: Given) -> Messages:
    """W011: with `session_authentication`, `allowed_origins` accepts pages of any site."""
    config = given.config
    if not config.session_authentication or config.allowed_origins is None:
        return []
    if not origins.is_allowed(_SOME_ORIGIN, config.allowed_origins):
        return []
    return [
        checks.Warning(
            "Browsers send session cookies from pages of any site, and allowed_origins lets all"
            " of them in: each can connect as whoever is logged in.",
            hint="Name your own origins in allowed_origins, or none for the same origin only.",
            id="realtime.W011",
        )
    ]


def check_origins_of_endpoint(given: Given) -> Messages:
    """W013: `proxy_connect_endpoint` gets the cookies of pages of any site."""
    config = given.config
    if not config.proxy_connect_endpoint:
        return []
    if not origins.is_allowed(_SOME_ORIGIN, config.allowed_origins):
        return []
    return [
        checks.Warning(
            "proxy_connect_endpoint is given the cookies of the handshake, and pages of any site"
            " may connect: where it knows users by cookies, each can connect as its visitor.",
            hint="Name your own origins in allowed_origins, or silence realtime.W013 if the"
            " endpoint looks at no cookies, or at Origin.",
            id="realtime.W013",
        )
    ]


def check_login_sessions(given: Given) -> Messages:
    """E021: `session_authentication` needs Django's sessions and users."""
    needed = ("django.contrib.auth", "django.contrib.sessions")
    missing = [name for name in needed if not apps.is_installed(name)]
    if not given.config.session_authentication or not missing:
        return []
    return [
        checks.Error(
            f"session_authentication needs {' and '.join(missing)} in INSTALLED_APPS.",
            hint="Install it, or let clients bring tokens.",
            id="realtime.E021",
        )
    ]
