"""The shared password, sessions and tokens, and how long they are valid.

A session is a cookie; a token is for tools, from `/admin/auth`. Both are signed with a key that
is made from `admin_secret` and `admin_password`, so a new secret or password ends all of them.
Only the IDs of sessions that ended early are stored.

    session   12 hours without a request, 30 days at most; signing out ends it
    token     30 days (docs/protocol.md, 9)
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
"""Seconds after which a used cookie is renewed."""

INSECURE_TOKEN = "insecure"
"""The token if no password is needed (docs/protocol.md, 9)."""

_SESSION_SALT = "realtime_admin.session"
_TOKEN_SALT = "realtime_admin.token"

logger = logging.getLogger("realtime.admin_panel")


class OperatorSession(NamedTuple):
    """One sign-in with the password."""

    id: str
    since: int
    """Unix seconds of the sign-in."""
    seen: int
    """Unix seconds of the last request that renewed the cookie."""

    def left(self, now: float) -> int:
        """Return the seconds until the session ends without requests; 0 or less: it has ended."""
        return math.ceil(min(self.seen + IDLE, self.since + LIFETIME) - now)


# the options


def is_on() -> bool:
    """Return whether the standalone panel is on. With invalid options it is off."""
    try:
        return sources.current().admin
    except InvalidOptions:
        return False


def needs_no_password(config: Config) -> bool:
    """Return whether every visitor is an operator."""
    return config.admin_insecure and (settings.DEBUG or config.admin_insecure_in_production)


def has_password(config: Config) -> bool:
    """Return whether there is a password to sign in with."""
    return bool(config.admin_password and config.admin_secret)


# the password


@sensitive_variables("attempt")
def try_password(config: Config, attempt: str, address: str, now: float) -> bool:
    """Return whether an attempt is the password.

    Args:
        config: the options in force.
        attempt: the text to compare.
        address: of the client.
        now: Unix seconds.

    Raises:
        Limited: there were too many attempts; this one was not compared.
    """
    try:
        limiter.count(address, now)
    except limiter.Limited:
        logger.warning("Too many attempts to sign in to the panel from %s", address)
        raise
    if not has_password(config) or not _same(attempt, config.admin_password):
        logger.warning("Wrong password for the panel from %s", address)
        return False
    limiter.take_back(address, now)
    logger.info("Signed in to the panel from %s", address)
    return True


@sensitive_variables("attempt", "password", "digests")
def _same(attempt: str, password: str) -> bool:
    """Compare in constant time; digests hide the length, too."""
    texts = (attempt, password)
    digests = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    return hmac.compare_digest(*digests)


# sessions


def begin(now: float) -> OperatorSession:
    """Return a new session with a random ID."""
    return OperatorSession(secrets.token_urlsafe(16), int(now), int(now))


def seal(config: Config, session: OperatorSession) -> str:
    """Return the signed cookie value of a session."""
    return _signer(config, _SESSION_SALT).sign_object(session)


@sensitive_variables("value")
def read(config: Config, value: str, now: float) -> OperatorSession | None:
    """Return the session in a cookie; None if it is not valid or has ended."""
    if not has_password(config):
        return None
    try:
        session = OperatorSession(*_signer(config, _SESSION_SALT).unsign_object(value))
    except BadSignature:
        return None
    if session.left(now) <= 0 or counters.is_marked(_ended(session)):
        return None
    return session


def end(session: OperatorSession, now: float) -> None:
    """End a session for all copies of its cookie."""
    counters.mark(_ended(session), max(1, session.since + LIFETIME - now))


def _ended(session: OperatorSession) -> str:
    return f"ended:{session.id}"


# tokens


def issue_token(config: Config, now: float) -> str:
    """Return a new token for `/admin/api`."""
    return _signer(config, _TOKEN_SALT).sign_object([secrets.token_urlsafe(16), int(now)])


@sensitive_variables("value")
def is_token(config: Config, value: str, now: float) -> bool:
    """Return whether a token is valid and has not expired."""
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
    # without fallbacks: by default those of SECRET_KEY are accepted, too
    return Signer(key=key, salt=salt, algorithm="sha256", fallback_keys=[])
