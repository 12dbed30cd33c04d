"""Settings of the site, and values, that defeat an option, as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from realtime.checks.options import HTTP_TRANSPORTS
from realtime.config.options import Config
from realtime.config.redis_options import uses_redis
from realtime.config.sources import Report

SHORTEST_TOKEN_LIFETIME = 30
"""Seconds: a page that was loaded on a slow line must still be able to connect."""


class Row(NamedTuple):
    """What defeats an option, or the site."""

    id: str
    applies: Callable[[Config], object]
    text: str
    hint: str


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


def _is_proxied(config: Config) -> bool:
    return config.proxy_sets_root_path or bool(
        settings.SECURE_PROXY_SSL_HEADER or settings.USE_X_FORWARDED_HOST
    )


ROWS = (
    Row(
        "realtime.W061",
        lambda c: c.token_lifetime < SHORTEST_TOKEN_LIFETIME,
        f"token_lifetime is less than {SHORTEST_TOKEN_LIFETIME} seconds: tokens expire before slow"
        " pages have connected.",
        "Use 600, the default. To end the connections of a user, call realtime.disconnect.",
    ),
    Row(
        "realtime.W062",
        lambda c: c.session_authentication and not c.proxy_sets_root_path and _cookie_stays_away(c),
        "SESSION_COOKIE_PATH keeps browsers from sending the session cookie to the service, so"
        " session_authentication knows no user there.",
        "Remove SESSION_COOKIE_PATH, or move the paths below it: websocket_handler_prefix and"
        " sockjs_handler_prefix. Silence realtime.W062 if a reverse proxy mounts the site there.",
    ),
    Row(
        "realtime.W063",
        lambda c: c.session_authentication and uses_redis(c) and _sessions_are_local(),
        "Each process has its own sessions, in memory, and there are several processes: a user who"
        " logged in at one is unknown, or still known after a logout, at the others.",
        "Set SESSION_ENGINE to django.contrib.sessions.backends.db, or the cache of the sessions to"
        " one that all processes share.",
    ),
    Row(
        "realtime.W064",
        lambda c: (
            c.session_authentication
            and uses_redis(c)
            and settings.SESSION_ENGINE.endswith(".signed_cookies")
        ),
        "Sessions are in cookies alone, and there are several processes: a cookie that was kept"
        " before a logout lets its bearer connect again, at each of them, until it expires.",
        "Set SESSION_ENGINE to django.contrib.sessions.backends.db, or silence realtime.W064 if you"
        " accept that.",
    ),
    Row(
        "realtime.W065",
        lambda c: c.address_connection_rate and not c.trusted_proxies and _is_proxied(c),
        "address_connection_rate is set, and the settings say that there is a reverse proxy, but"
        " trusted_proxies is 0: all clients count as one address, that of the proxy.",
        "Set trusted_proxies to the number of reverse proxies that append to X-Forwarded-For.",
    ),
)


def check_rows(report: Report) -> list[CheckMessage]:
    """Return what defeats an option.

    W061: `token_lifetime` is too short.
    W062: `SESSION_COOKIE_PATH` keeps the session cookie from the service.
    W063: sessions are in the memory of each process, and there are several.
    W064: sessions are in cookies alone, and there are several processes.
    W065: `address_connection_rate` behind a reverse proxy, without `trusted_proxies`.
    """
    return [
        checks.Warning(row.text, hint=row.hint, id=row.id)
        for row in ROWS
        if row.applies(report.config)
    ]
