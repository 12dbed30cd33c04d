"""Identify clients without a token by their login session.

Sessions count for pages of the same origin and of origins in `allowed_origins` only, because
browsers send cookies with a WebSocket handshake from any page. A connection belongs to its
session: the session is checked again at intervals, and at once when Django reports a change
(`realtime.logout`).

A login can end while its client is being identified:
- `ended` makes a check that read the session before the change read it again;
- a session after a logout is refused for a while, because Django reports the logout before it
  removes the session, and some session engines (cached_db) keep it in a second place.

An auth session is the digest of a session key: the key is a secret, and other nodes must know
which connections belong to a session.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends import signed_cookies
from django.http import HttpRequest, parse_cookie
from django.http.request import split_domain_port, validate_host

from realtime.config import origins
from realtime.hooks.answers import optional
from realtime.hooks.registry import Registry
from realtime.hooks.runner import Runner
from realtime.node.hooks import Caller, Handshake, Identity, Refreshed
from realtime.payload import Payload

logger = logging.getLogger("realtime.hooks")

CHECK_INTERVAL = 60.0
"""Seconds until a session is checked again, at the latest. Not every change is reported."""
CHECK_SPREAD = 0.25
"""Share of the interval by which checks are spread: many clients may have connected at once."""
ENDED_LIFETIME = 60.0
"""Seconds for which an ended session is refused, even if its engine still has it."""


class Logins:
    """Identifies clients by their login sessions. Belongs to one event loop."""

    def __init__(
        self,
        runner: Runner,
        registry: Registry,
        allowed_origins: Sequence[str] | None,
        workers: int,
        reader: Runner | None = None,
    ) -> None:
        """
        Args:
            runner: for the site's info hook.
            allowed_origins: the option.
            workers: threads of the reader; at most half of them check sessions again.
            reader: reads sessions, by default `runner`. With a reader of its own, slow hooks
                neither keep clients from connecting nor delay the end of a login.
        """
        self._runner = runner
        self._reader = reader or runner
        self._registry = registry
        self._allowed_origins = allowed_origins
        self._refreshing = asyncio.Semaphore(max(1, workers // 2))
        self._identifying: dict[object, set[str]] = {}
        """For each client that is being identified: the users that have changed since."""
        self._ended: dict[str, float] = {}
        """Auth session → until when it is refused, in monotonic seconds, in this order."""

    async def identify(self, caller: Caller) -> Identity | None:
        """Identify a client by its session; None without a session of an active user.

        The caller must register the client at the node without awaiting anything.

        Raises:
            Error, Disconnect: the site's info hook refuses.
            InternalError: the session cannot be read.
        """
        key = _cookie(caller.handshake)
        if not key:
            return None
        if not trusts(caller.handshake, self._allowed_origins):
            logger.warning(
                "Ignored a login session: the page has the origin %r, and the host of the service"
                " is %r. If both are this site, let the reverse proxy pass Host on, or set"
                " USE_X_FORWARDED_HOST, and list the host in ALLOWED_HOSTS. Else list the origin in"
                " allowed_origins to accept it.",
                caller.handshake.headers.get("origin"),
                host_of(caller.handshake),
            )
            return None
        changed: set[str] = set()
        self._identifying[check := object()] = changed
        try:
            while True:
                changed.clear()
                session = await self._read(key)
                if session is None:
                    return None
                user, info, auth_session = session
                if user not in changed:
                    break
        finally:
            del self._identifying[check]
        return Identity(
            user,
            info,
            expires_at=_next_check(),
            auth_session=auth_session,
            server_side_refresh=True,
        )

    async def refresh(self, caller: Caller, auth_session: str) -> Refreshed | None:
        """Return the next check of a session, None if it has ended or changed its user.

        Raises:
            Error, Disconnect: the site's info hook refuses.
            InternalError: the session cannot be read.
        """
        async with self._refreshing:
            session = await self._read(_cookie(caller.handshake))
        if session is None:
            return None
        user, info, found = session
        if (user, found) != (caller.user, auth_session):
            return None
        return Refreshed(_next_check(), info)

    def auth_session_of(self, handshake: Handshake) -> str:
        """Return the auth session of a request, without reading it from a store.

        Returns:
            "" for a request without a session, or which a page of another origin may have sent.
            Whether the session is valid is not checked.
        """
        key = _cookie(handshake)
        if not key or not trusts(handshake, self._allowed_origins):
            return ""
        store = import_module(settings.SESSION_ENGINE).SessionStore
        # a session in the cookie itself changes its key; reading it needs no store
        lives_in_cookie = issubclass(store, signed_cookies.SessionStore)
        return auth_session_of(store(key)) if lives_in_cookie else digest(key)

    def ended(self, user: str, auth_session: str) -> None:
        """Refuse an auth session that ended; "" means that the user changed."""
        if not auth_session:
            for changed in self._identifying.values():
                changed.add(user)
            return
        now = time.monotonic()
        for known, until in list(self._ended.items()):
            if until > now:
                break
            del self._ended[known]
        self._ended.pop(auth_session, None)  # so that it comes last
        self._ended[auth_session] = now + ENDED_LIFETIME

    async def _read(self, key: str) -> tuple[str, Payload | None, str] | None:
        """Return user ID, connection info and auth session; None without an active user."""
        session = await self._reader.run(_load, key)
        if session is None:
            return None
        user, auth_session = session
        info: Payload | None = None
        if (function := self._registry.single.get("info")) is not None:
            info = await self._runner.run(function, user, read=optional)
        if self._ended.get(auth_session, 0) > time.monotonic():
            return None
        return str(user.pk), info, auth_session


def _load(key: str) -> tuple[Any, str] | None:
    """Return the user of a session and its auth session. Reads the session, never writes it."""
    session: Any = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Django renews or ends a session with the hash of an older secret or password, but here
    # there is no response to tell the browser
    session.cycle_key = session.flush = lambda: None
    request = HttpRequest()
    request.session = session
    user: Any = get_user(request)
    if not user.is_authenticated or not user.is_active:
        return None
    return user, auth_session_of(session)


def _next_check() -> float:
    return time.time() + CHECK_INTERVAL * (1 - CHECK_SPREAD * random.random())


def _cookie(handshake: Handshake) -> str:
    """Return the session key in a request's cookies; "" for none."""
    cookies = handshake.headers.get("cookie") or handshake.withheld.get("cookie", "")
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "")


def site_headers() -> tuple[str, ...]:
    """Return the lower-case names of the headers from which Django takes host and scheme."""
    names = ["x-forwarded-host"] if settings.USE_X_FORWARDED_HOST else []
    if settings.SECURE_PROXY_SSL_HEADER:
        names.append(_header_name(settings.SECURE_PROXY_SSL_HEADER[0]))
    return tuple(names)


def _header_name(variable: str) -> str:
    return variable.removeprefix("HTTP_").replace("_", "-").lower()


def host_of(handshake: Handshake) -> str:
    """Return the host that a browser asked for, as `HttpRequest.get_host` knows it."""
    if settings.USE_X_FORWARDED_HOST:
        return handshake.site_headers.get("x-forwarded-host", handshake.host)
    return handshake.host


def is_secure(handshake: Handshake) -> bool | None:
    """Return whether the browser came by TLS; None if neither reverse proxy nor server says so."""
    if not settings.SECURE_PROXY_SSL_HEADER:
        return handshake.is_secure or None
    variable, secure = settings.SECURE_PROXY_SSL_HEADER
    value = handshake.site_headers.get(_header_name(variable))
    if value is None:
        return None
    scheme = value.split(",", 1)[0].strip()  # Django reads the first one, too
    # what Traefik says of a WebSocket
    return {"wss": "https", "ws": "http"}.get(scheme, scheme) == secure


def trusts(handshake: Handshake, allowed_origins: Sequence[str] | None) -> bool:
    """Return whether the page that sent a request may act with its cookies.

    Args:
        handshake: of the request.
        allowed_origins: the option.
    """
    return is_trusted(
        handshake.headers.get("origin"),
        host_of(handshake),
        allowed_origins,
        is_secure(handshake),
    )


def is_trusted(
    page: str | None,
    host: str,
    allowed_origins: Sequence[str] | None,
    secure: bool | None = None,
) -> bool:
    """Return whether a page may use the session of its cookie.

    Args:
        page: its origin; None when the client is not a browser.
        host: the host that the browser asked for.
        allowed_origins: the option.
        secure: whether it came by TLS; None if that is not known.
    """
    if page is None or is_same_origin(page, host, secure):
        return True
    patterns = [pattern for pattern in allowed_origins or () if _names_a_host(pattern)]
    return bool(patterns) and origins.is_allowed(page, patterns)


def is_same_origin(page: str, host: str, secure: bool | None = None) -> bool:
    """Return whether an origin is that of a host of this site.

    Under TLS if session cookies are for TLS only.

    Args:
        page: the origin.
        host: the host, with the port where it is not the default one.
        secure: whether the host was asked by TLS; None if that is not known.
    """
    page = page.lower()
    try:
        scheme, netloc, *_ = urlsplit(page)
    except ValueError:
        return False
    if settings.SESSION_COOKIE_SECURE and scheme != "https":
        return False
    if secure is not None and secure != (scheme == "https"):
        return False
    if not _is_site(host):
        return False
    implied = ":443" if scheme == "https" else ":80"
    return netloc != "" and netloc.removesuffix(implied) == host.lower().removesuffix(implied)


def _is_site(host: str) -> bool:
    """Return whether Django would serve a page for this host."""
    domain, _ = split_domain_port(host)
    allowed = settings.ALLOWED_HOSTS
    if settings.DEBUG and not allowed:
        allowed = [".localhost", "127.0.0.1", "[::1]"]
    return bool(domain) and validate_host(domain, allowed)


@lru_cache(maxsize=256)
def _names_a_host(pattern: str) -> bool:
    """Return whether a pattern of origins names more than a scheme and a port.

    A pattern that matches any host does not count, however it is written: `http*`,
    `{https://site.example,*}` and `[a-z]*` mean the same as `*`, which turns the origin check
    off. That is harmless with tokens, but with sessions any page could act as its visitor.
    """
    host = re.sub(r":[\d*?]+$", "", pattern.rpartition("://")[2])
    if not any(character.isalnum() for character in host):
        return False
    return not any(origins.is_allowed(page, (pattern,)) for page in _ANY_PAGES)


_ANY_PAGES = tuple(
    f"{scheme}://{host}{port}"
    for scheme in ("https", "http")
    for host in ("q7x-somewhere.invalid", "192.0.2.77")
    for port in ("", ":80", ":443", ":8000", ":8080", ":8443")
)
"""Origins that only a pattern for any host matches (RFC 6761, RFC 5737)."""


LOGIN_KEY = "_realtime_login"
"""Key under which a session of signed cookies, which has no other key, keeps a random ID."""


def digest(session_key: str) -> str:
    """Return the auth session of a session key; "" for none."""
    return hashlib.blake2b(session_key.encode(), digest_size=16).hexdigest() if session_key else ""


def auth_session_of(session: Any) -> str:
    """Return the auth session of a Django session."""
    return digest(session.get(LOGIN_KEY) or session.session_key or "")
