"""The login session as credential: a client without a token is who its Django session says.

Only connections of the same origin, or of one in `allowed_origins`, are believed: browsers
send cookies along with a WebSocket handshake from any page. The connection is bound to the
session: it is looked at again from time to time, and at once when Django says that something
changed (`realtime.logout`).

A login that ends while its client is being identified ends that too:
- what reads the session as it was is told, by `ended`, to read it once more;
- a session that was logged out is refused for a while, because Django says so before it
  removes the session, and some engines (cached_db) hold it in a second place.
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
from django.http import HttpRequest

from realtime.config import origins
from realtime.hooks.answers import optional
from realtime.hooks.registry import Registry
from realtime.hooks.requests import Request
from realtime.hooks.runner import Runner
from realtime.node.hooks import Caller, Identity, Refresh
from realtime.payload import Payload

logger = logging.getLogger("realtime.hooks")

CHECK_INTERVAL = 60.0
"""Seconds until a session is looked at again, at the latest, for changes nothing announces."""
CHECK_SPREAD = 0.25
"""By which part of that some are looked at earlier: many clients may have come at once."""
ENDED_LIFETIME = 60.0
"""Seconds a session that ended is refused, whatever its engine still says."""


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
            workers: threads of the reader; half of them at most look at sessions again.
            reader: reads sessions; by default `runner`. With threads of its own, clients that
                keep slow hooks busy neither keep others out nor keep a login alive that ended.
        """
        self._runner = runner
        self._reader = reader or runner
        self._registry = registry
        self._allowed_origins = allowed_origins
        self._renewing = asyncio.Semaphore(max(1, workers // 2))
        self._identifying: dict[object, set[str]] = {}
        """For each client that is being identified: users about whom something changed."""
        self._ended: dict[str, float] = {}
        """Login → until when it is refused, monotonic seconds, in this order."""

    async def identify(self, caller: Caller) -> Identity | None:
        """Who a client is; None without a session of a user who may log in.

        The caller must make the client known to the node without awaiting anything.

        Raises:
            Error, Disconnect: the site's info hook refuses.
            InternalError: the session cannot be read.
        """
        key = _session_key(caller)
        if not key:
            return None
        handshake = caller.handshake
        if not is_believed(handshake.headers.get("origin"), handshake.host, self._allowed_origins):
            logger.info("The login session of a page of another origin is not believed")
            return None
        changed: set[str] = set()
        self._identifying[turn := object()] = changed  # sets that are equal are not the same
        try:
            while True:
                changed.clear()
                found = await self._read(key)
                if found is None:
                    return None
                user, info, login = found
                if user not in changed:
                    break
        finally:
            del self._identifying[turn]
        return Identity(
            user,
            info,
            expires_at=_next_check(),
            auth_session=login,
            server_side_refresh=True,
        )

    async def refresh(self, caller: Caller, login: str) -> Refresh | None:
        """Whether the session is still there, and of the same user.

        Raises:
            Error, Disconnect: the site's info hook refuses.
            InternalError: the session cannot be read.
        """
        async with self._renewing:
            found = await self._read(_session_key(caller))
        if found is None or (found[0], found[2]) != (caller.user, login):
            return None
        return Refresh(_next_check(), found[1])

    def ended(self, user: str, login: str) -> None:
        """A login session ended; "" means that something changed about the user."""
        if not login:
            for changed in self._identifying.values():
                changed.add(user)
            return
        now = time.monotonic()
        for known, until in list(self._ended.items()):
            if until > now:
                break
            del self._ended[known]
        self._ended.pop(login, None)  # it comes last now
        self._ended[login] = now + ENDED_LIFETIME

    async def _read(self, key: str) -> tuple[str, Payload | None, str] | None:
        """User ID, connection info and login of a session; None when it says nothing."""
        found = await self._reader.run(_load, key)
        if found is None:
            return None
        user, login = found
        info: Payload | None = None
        if (function := self._registry.single.get("info")) is not None:
            info = await self._runner.run(function, user, read=optional)
        if self._ended.get(login, 0) > time.monotonic():
            return None
        return str(user.pk), info, login


def _load(key: str) -> tuple[Any, str] | None:
    """The user of a session, and its login. Reads the session, and never writes it."""
    session: Any = import_module(settings.SESSION_ENGINE).SessionStore(key)
    # Django renews or ends a session where its hash is of an older secret or password; here
    # nobody could tell the browser
    session.cycle_key = session.flush = lambda: None
    request = HttpRequest()
    request.session = session
    user: Any = get_user(request)
    if not user.is_authenticated or not user.is_active:
        return None
    return user, of(session)


def _next_check() -> float:
    return time.time() + CHECK_INTERVAL * (1 - CHECK_SPREAD * random.random())


def _session_key(caller: Caller) -> str:
    request = Request(client=caller.client, user=caller.user, handshake=caller.handshake)
    return request.cookies.get(settings.SESSION_COOKIE_NAME, "")


def is_believed(page: str | None, host: str, allowed_origins: Sequence[str] | None) -> bool:
    """Whether a page of this origin may use the session; without an origin it is no page."""
    if page is None or is_same_origin(page, host):
        return True
    named = [pattern for pattern in allowed_origins or () if _names_a_host(pattern)]
    return bool(named) and origins.is_allowed(page, named)


def is_same_origin(page: str, host: str) -> bool:
    """Whether an origin is that of a host; where cookies are for TLS only, so is the origin."""
    page = page.lower()
    try:
        scheme, netloc, *_ = urlsplit(page)
    except ValueError:
        return False
    if settings.SESSION_COOKIE_SECURE and scheme != "https":
        return False
    implied = ":443" if scheme == "https" else ":80"
    return netloc != "" and netloc.removesuffix(implied) == host.lower().removesuffix(implied)


@lru_cache(maxsize=256)
def _names_a_host(pattern: str) -> bool:
    """Whether a pattern of origins names more than a scheme and a port.

    It must not match just any host, however it is written: `http*`, `{https://site.example,*}`
    and `[a-z]*` say no more than `*`, which turns the check of origins off. That is harmless with
    tokens, and would hand the sessions of all users to every page of the world.
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
"""Origins that no pattern with a host in it means (RFC 6761, RFC 5737)."""


LOGIN_KEY = "_realtime_login"
"""Where a session that lives in its cookie alone keeps what tells it from others."""


def digest(session_key: str) -> str:
    """What stands for a session where its key, which is a secret, must not be seen."""
    return hashlib.blake2b(session_key.encode(), digest_size=16).hexdigest() if session_key else ""


def of(session: Any) -> str:
    """The login of a session: the digest that all its connections bear."""
    return digest(session.get(LOGIN_KEY) or session.session_key or "")
