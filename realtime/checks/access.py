"""Checks of what anyone may do, and of the pages that may connect."""

from __future__ import annotations

import functools
import inspect
from ipaddress import ip_network
from types import CodeType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models

from realtime.checks.table import Found, check, places
from realtime.config import origins
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.hooks.registry import registry
from realtime.hooks.site import hooks_needed

METRICS_KEY_MIN_LENGTH = 16

HTTP_TRANSPORTS = ("events", "http_stream", "sse", "uni_http_stream", "uni_sse", "uni_websocket")
"""Options of transports that are served to pages of the same host where the site decides something
and `allowed_origins` does not say otherwise."""

_SOME_ORIGIN = "https://somewhere.invalid"
"""An origin that no site has."""


def ways_in(config: Config) -> list[str]:
    """Return with what clients can connect; empty if none can."""
    ways = {
        "a token": config.connection_tokens.verifies,
        "the login session": config.session_authentication,
        "proxy_connect_endpoint": config.proxies["connect"].endpoint,
        "a connect hook": "connect" in registry.single,
        "nothing at all": config.client_anonymous or config.client_insecure,
    }
    return [way for way, is_open in ways.items() if is_open]


@check(
    "realtime.W029",
    "Turn session_authentication on, or set token_hmac_secret_key. To make one: manage.py realtime"
    " genconfig.",
)
def check_ways_in(report: Report) -> Found:
    """W029: no client can connect."""
    if not ways_in(report.config):
        yield "No client can connect: there are no tokens, no login sessions and no connect hook."


@check(
    "realtime.W003",
    "Set subscribe_to_publish (or allow_publish_for_subscriber in place of"
    " allow_publish_for_client), or silence realtime.W003 if you intend that.",
)
def check_publish_permission(report: Report) -> Found:
    """W003: clients may publish into channels that they cannot subscribe to."""
    for place, options in places(report.config).items():
        if options.publish and not options.subscribe_to_publish:
            yield f"Any client may publish into any channel of {place}, private ones included."


@check("realtime.W004", "Turn it off outside of development.")
def check_insecure(report: Report) -> Found:
    """W004: `client_insecure`, `api_insecure` or `admin_insecure` is on without DEBUG."""
    config = report.config
    if settings.DEBUG:
        return
    if config.client_insecure:
        yield (
            "client_insecure is on: anyone may connect, subscribe, publish, and read presence and"
            " history."
        )
    if config.api_insecure:
        yield "api_insecure is on: anyone who can reach the server API may use it."
    # it has an effect only with the second option, see E022
    if config.admin and config.admin_insecure and config.admin_insecure_in_production:
        yield "admin_insecure is on: anyone who can reach the panel may use all of it."


@check(
    "realtime.W041",
    "Name the addresses of your Prometheus, or set a metrics_key such as one that manage.py"
    " realtime genconfig makes for api_key.",
)
def check_metrics(report: Report) -> Found:
    """W041: anyone may read the metrics, or `metrics_key` is short."""
    config = report.config
    addresses = config.metrics_addresses or ()
    if any(ip_network(each, strict=False).prefixlen == 0 for each in addresses):
        yield "metrics_addresses has all addresses: anyone may read the metrics."
    if 0 < len(config.metrics_key) < METRICS_KEY_MIN_LENGTH:
        yield f"metrics_key is shorter than {METRICS_KEY_MIN_LENGTH} characters."


@check("realtime.W006")
def check_origins(report: Report) -> Found:
    """W006: a pattern in `allowed_origins` never matches."""
    for pattern in report.config.allowed_origins or ():
        if hint := _never_matches(pattern):
            yield f"The pattern {pattern!r} in allowed_origins never matches.", hint


def _cookies_of_any_page_count(config: Config) -> bool:
    if config.allowed_origins is None:
        return False  # those of pages of other hosts do not
    patterns = tuple(filter(origins.is_pattern, config.allowed_origins))  # E011 reports the others
    return origins.is_allowed(_SOME_ORIGIN, patterns)


def _never_matches(pattern: str) -> str:
    """Return what to write instead of a pattern that matches no origin; "" if it may match."""
    if pattern != pattern.lower():
        return "Write the pattern in lower case, as origins are compared."
    scheme, found, rest = pattern.partition("://")
    if not found:
        if pattern == "null" or any(sign in pattern for sign in "*?[{"):
            return ""
        return f"An origin begins with a scheme: write https://{pattern}."
    if "/" in rest:
        return (
            f"An origin has no path and no slash at its end: write {scheme}://{rest.split('/')[0]}."
        )
    port = {"https": ":443", "http": ":80"}.get(scheme, "")
    if port and rest.endswith(port):
        return f"Browsers leave the usual port out: write {pattern.removesuffix(port)}."
    return ""


@check(
    "realtime.W011",
    "List your own origins in allowed_origins, or remove it to allow the same origin only.",
)
def check_origins_of_sessions(report: Report) -> Found:
    """W011: with `session_authentication`, `allowed_origins` accepts pages of any site."""
    if report.config.session_authentication and _cookies_of_any_page_count(report.config):
        yield (
            "Browsers send session cookies from pages of any site, and allowed_origins allows all"
            " of them: any page can connect as the user who is logged in."
        )


@check(
    "realtime.W013",
    "List your own origins in allowed_origins, or silence realtime.W013 if the endpoint ignores"
    " cookies or checks the header Origin.",
)
def check_origins_of_endpoint(report: Report) -> Found:
    """W013: `proxy_connect_endpoint` gets the cookies of pages of any site."""
    proxy = report.config.proxies["connect"]
    own = proxy.http_headers
    gets_cookies = own is None or "cookie" in map(str.lower, own)
    if proxy.endpoint and gets_cookies and _cookies_of_any_page_count(report.config):
        yield (
            "proxy_connect_endpoint gets the cookies of the handshake, and allowed_origins allows"
            " pages of any site: if the endpoint identifies users by cookies, any page can connect"
            " as its visitor."
        )


@check(
    "realtime.W026",
    "List your own origins in allowed_origins, or silence realtime.W026 if the hook ignores"
    " cookies or checks the header Origin.",
)
def check_origins_of_hooks(report: Report) -> Found:
    """W026: a hook reads headers of handshakes, which pages of any site may open."""
    if not _cookies_of_any_page_count(report.config):
        return
    for function in registry.functions():
        if _names_of(_code_of(function)) & _READS_HEADERS:
            yield (
                f"The hook {getattr(function, '__qualname__', function)} reads headers of the"
                " handshake, and allowed_origins allows pages of any site: if it identifies users"
                " by cookies, any page can act as its visitor."
            )


_READS_HEADERS = {"cookies", "handshake", "headers"}
"""Attributes of a hook's request."""


def _code_of(function: Any) -> CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        function = type(function).__call__  # an object that can be called
    return getattr(function, "__code__", None)


def _names_of(code: CodeType | None) -> set[str]:
    """Return the names of attributes and globals in a function and the functions inside it."""
    if code is None:
        return set()
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names_of, inner))


@check(
    "realtime.W040", "List the origins of your pages in allowed_origins, or silence realtime.W040."
)
def check_transports(report: Report) -> Found:
    """W040: a transport without `allowed_origins` is for one host only, because cookies may count.

    Browsers open these transports from any page, and send cookies with them. Login sessions, hooks
    and proxies may read them.
    """
    config = report.config
    if hooks_needed(config, registry) and config.allowed_origins is None:
        for name in HTTP_TRANSPORTS:
            if getattr(config, name):
                yield (
                    f"{name} is on without allowed_origins, and login sessions, hooks or proxies"
                    " may read cookies: only pages of the host that they connect to may use it."
                )


@check(
    "realtime.W027",
    "Turn history_recover (or force_recovery) and allow_recovery off, keep less, or silence"
    " realtime.W027 if subscribers may see what is kept.",
)
def check_recovered_history(report: Report) -> Found:
    """W027: clients may not read history, but can recover all of it."""
    for place, options in places(report.config).items():
        recovers = options.history_recover or options.allow_recovery
        if options.history_disable_for_client and recovers:
            yield (
                f"Clients may not read the history in {place}, but a client that may subscribe can"
                " recover all that is kept."
            )


@check(
    "realtime.W017",
    "Silence realtime.W017 if no key contains them, or use other IDs for clients.",
)
def check_user_ids(report: Report) -> Found:
    """W017: with `user_subscribe_to_personal`, IDs of users may contain `#` or `,`."""
    if not report.config.user_subscribe_to_personal or not apps.is_installed("django.contrib.auth"):
        return
    key = get_user_model()._meta.pk
    is_text = isinstance(key, models.CharField | models.TextField)
    if is_text and not isinstance(key, models.SlugField):
        yield (
            "The primary keys of users are text. A user whose key contains channel_user_boundary or"
            " channel_user_separator has no personal channel, and cannot connect."
        )


@check("realtime.E021", "Add it to INSTALLED_APPS, or turn session_authentication off.")
def check_login_sessions(report: Report) -> Found:
    """E021: `session_authentication` needs Django's sessions and users."""
    needed = ("django.contrib.auth", "django.contrib.sessions")
    missing = [name for name in needed if not apps.is_installed(name)]
    if report.config.session_authentication and missing:
        yield f"session_authentication needs {' and '.join(missing)} in INSTALLED_APPS."
