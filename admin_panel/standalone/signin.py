"""Password, sessions and tokens: what is right, and for how long.

A session is a cookie, a token is what `/admin/auth` gives to tools. Both are signed with a key
made of `admin_secret` and `admin_password`, so a new one of either ends all of them. Nothing
is stored but the IDs of sessions that were ended before their time.

    session   12 hours without a request, 30 days at most; ended by signing out
    token     30 days (protocol-v2, 9)
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
from hashlib import sha256
from typing import NamedTuple

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.views.decorators.debug import sensitive_variables

from realtime.config import sources
from realtime.config.options import Config
from realtime.config.reader import InvalidOptions

from . import counters, limiter

IDLE = 12 * 3600
LIFETIME = 30 * 86400
TOKEN_LIFETIME = 30 * 86400
"""Seconds."""

RENEW_AFTER = 60
"""Seconds after which a cookie that is used is given anew."""

INSECURE_TOKEN = "insecure"
"""The token where no password is needed (protocol-v2, 9)."""

_SESSION_SALT = "realtime_admin.session"
_TOKEN_SALT = "realtime_admin.token"

logger = logging.getLogger("realtime.admin_panel")


class Session(NamedTuple):
    """One sign-in with the password."""

    id: str
    since: int
    """Unix seconds of the sign-in."""
    seen: int
    """Unix seconds of the last request that was noted."""

    def left(self, now: float) -> int:
        """Seconds until the session ends if nothing comes any more; 0 or less: it has ended."""
        return math.ceil(min(self.seen + IDLE, self.since + LIFETIME) - now)


# the options


def is_on() -> bool:
    """Whether the panel is served by itself. A wrong configuration serves the rest of the site."""
    try:
        return sources.current().admin
    except InvalidOptions:
        return False


def needs_no_password(config: Config) -> bool:
    """Whether everybody is an operator."""
    return config.admin_insecure and (settings.DEBUG or config.admin_insecure_in_production)


def has_password(config: Config) -> bool:
    """Whether one can sign in with a password at all."""
    return bool(config.admin_password and config.admin_secret)


# the password


@sensitive_variables("given")
def try_password(config: Config, given: str, address: str, now: float) -> bool:
    """Whether this is the password.

    Args:
        address: where the attempt comes from.
        now: Unix seconds.

    Raises:
        Limited: there were too many attempts; the password was not looked at.
    """
    try:
        limiter.count(address, now)
    except limiter.Limited:
        logger.warning("Signing in to the panel is limited for %s", address)
        raise
    if not has_password(config) or not _same(given, config.admin_password):
        logger.warning("A wrong password for the panel from %s", address)
        return False
    limiter.take_back(address, now)
    logger.info("Signed in to the panel from %s", address)
    return True


@sensitive_variables("given", "password", "digests")
def _same(given: str, password: str) -> bool:
    """Compare in constant time; digests, so that the length does not show either."""
    digests = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, password))
    return hmac.compare_digest(*digests)


# sessions


def begin(now: float) -> Session:
    """A new session, with an ID nobody can know before."""
    return Session(secrets.token_urlsafe(16), int(now), int(now))


def seal(config: Config, session: Session) -> str:
    """A session as the value of a cookie."""
    return _signer(config, _SESSION_SALT).sign_object(session)


@sensitive_variables("value")
def read(config: Config, value: str, now: float) -> Session | None:
    """The session that a cookie holds, None when it is not one or has ended."""
    if not has_password(config):
        return None
    try:
        session = Session(*_signer(config, _SESSION_SALT).unsign_object(value))
    except BadSignature:
        return None
    if session.left(now) <= 0 or counters.is_marked(_ended(session)):
        return None
    return session


def end(session: Session, now: float) -> None:
    """End a session for the rest of its life, whoever has a copy of the cookie."""
    counters.mark(_ended(session), max(1, session.since + LIFETIME - now))


def _ended(session: Session) -> str:
    return f"ended:{session.id}"


# tokens


def issue_token(config: Config, now: float) -> str:
    """A token for `/admin/api`."""
    return _signer(config, _TOKEN_SALT).sign_object([secrets.token_urlsafe(16), int(now)])


@sensitive_variables("value")
def is_token(config: Config, value: str, now: float) -> bool:
    """Whether this is a token of ours that has not expired."""
    if needs_no_password(config):
        return value == INSECURE_TOKEN
    if not has_password(config):
        return False
    try:
        _id, issued_at = _signer(config, _TOKEN_SALT).unsign_object(value)
    except BadSignature:
        return False
    return bool(now < issued_at + TOKEN_LIFETIME)


@sensitive_variables("password", "key")
def _signer(config: Config, salt: str) -> Signer:
    password = config.admin_password.encode()
    key = hmac.digest(config.admin_secret.encode(), password, "sha256")
    # no fallbacks: by default those of SECRET_KEY would be accepted, too
    return Signer(key=key, salt=salt, algorithm="sha256", fallback_keys=[])
