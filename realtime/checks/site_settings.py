"""Checks of settings of the site, and of values, that defeat an option."""

from __future__ import annotations

from django.conf import settings

from realtime.checks.access import HTTP_TRANSPORTS
from realtime.checks.table import Found, check
from realtime.config.options import Config
from realtime.config.sources import Report
from realtime.engine import factory

SHORTEST_TOKEN_LIFETIME = 30
"""Seconds: a page that was loaded on a slow line must still be able to connect."""


@check(
    "realtime.W061",
    "Use 600, the default. To end the connections of a user, call realtime.disconnect.",
)
def check_token_lifetime(report: Report) -> Found:
    """W061: `token_lifetime` is too short."""
    if report.config.token_lifetime < SHORTEST_TOKEN_LIFETIME:
        yield (
            f"token_lifetime is less than {SHORTEST_TOKEN_LIFETIME} seconds: tokens expire before"
            " slow pages have connected."
        )


@check(
    "realtime.W062",
    "Remove SESSION_COOKIE_PATH, or move the paths below it: websocket_handler_prefix and"
    " sockjs_handler_prefix. Silence realtime.W062 if a reverse proxy mounts the site there.",
)
def check_cookie_path(report: Report) -> Found:
    """W062: `SESSION_COOKIE_PATH` keeps the session cookie from the service."""
    config = report.config
    is_mounted = config.proxy_sets_root_path
    if config.session_authentication and not is_mounted and _cookie_stays_away(config):
        yield (
            "SESSION_COOKIE_PATH keeps browsers from sending the session cookie to the service, so"
            " session_authentication knows no user there."
        )


@check(
    "realtime.W063",
    "Set SESSION_ENGINE to django.contrib.sessions.backends.db, or the cache of the sessions to"
    " one that all processes share.",
)
def check_local_sessions(report: Report) -> Found:
    """W063: sessions are in the memory of each process, and there are several."""
    if _several_processes_read_sessions(report.config) and _sessions_are_local():
        yield (
            "Each process has its own sessions, in memory, and there are several processes: a user"
            " who logged in at one is unknown, or still known after a logout, at the others."
        )


@check(
    "realtime.W064",
    "Set SESSION_ENGINE to django.contrib.sessions.backends.db, or silence realtime.W064 if you"
    " accept that.",
)
def check_sessions_in_cookies(report: Report) -> Found:
    """W064: sessions are in cookies alone, and there are several processes."""
    are_in_cookies = settings.SESSION_ENGINE.endswith(".signed_cookies")
    if are_in_cookies and _several_processes_read_sessions(report.config):
        yield (
            "Sessions are in cookies alone, and there are several processes: a cookie that was kept"
            " before a logout lets its bearer connect again, at each of them, until it expires."
        )


@check(
    "realtime.W065",
    "Set trusted_proxies to the number of reverse proxies that append to X-Forwarded-For.",
)
def check_trusted_proxies(report: Report) -> Found:
    """W065: `address_connection_rate` behind a reverse proxy, without `trusted_proxies`."""
    config = report.config
    is_proxied = (
        config.proxy_sets_root_path
        or settings.SECURE_PROXY_SSL_HEADER
        or settings.USE_X_FORWARDED_HOST
    )
    if config.address_connection_rate and is_proxied and not config.trusted_proxies:
        yield (
            "address_connection_rate is set, and the settings say that there is a reverse proxy,"
            " but trusted_proxies is 0: all clients have the address of the proxy."
        )


def _several_processes_read_sessions(config: Config) -> bool:
    return config.session_authentication and factory.is_shared(config)


def _sessions_are_local() -> bool:
    """Return whether each process has a cache of its own for sessions."""
    if settings.SESSION_ENGINE.rpartition(".")[2] not in ("cache", "cached_db"):
        return False
    backend = settings.CACHES.get(settings.SESSION_CACHE_ALIAS, {}).get("BACKEND", "")
    return str(backend).endswith(".LocMemCache")


def _cookie_stays_away(config: Config) -> bool:
    """Return whether browsers send the session cookie to no path of a transport that is on."""
    paths = [f"/connection/{name}" for name in HTTP_TRANSPORTS if getattr(config, name)]
    paths += [] if config.websocket_disable else [config.websocket_handler_prefix]
    paths += [] if config.sockjs_disable else [config.sockjs_handler_prefix]
    script = (settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    scope = settings.SESSION_COOKIE_PATH.rstrip("/") + "/"
    return any(not f"{script}{path}/".startswith(scope) for path in paths)
