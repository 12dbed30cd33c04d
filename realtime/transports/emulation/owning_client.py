"""Whose a session is, and which requests show that they are of the same client.

The name of a session is in paths, so it proves nothing. A session belongs to

- the auth session of the request that began it, if that has one;
- otherwise, where a hook or proxy may identify its client by a cookie, to who brings the cookie
  that the first response sets, or exactly the credentials of the first request. Other cookies may
  change while a session lives: those of sessions that slide, of load balancers, of analytics. And
  a client that sends cookies by itself does not keep ours;
- otherwise to who knows its name: nothing else tells one client from another.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

from realtime.node.hooks import Handshake, Hooks
from realtime.transports.asgi import Scope, cookies, header
from realtime.transports.handshake import SESSION_COOKIE

COOKIE_LIFETIME = 24 * 3600
"""Seconds until browsers forget a session's cookie. A session that lives longer begins anew."""

MAX_PROOFS = 8
"""Cookies of this name that are looked at: a page of a subdomain can set more of them."""


class Shown(Protocol):
    """What a request shows. None: an older node relays it during an upgrade, and cannot say."""

    @property
    def auth_session(self) -> str | None:
        """The auth session; "" for none."""

    @property
    def proofs(self) -> tuple[str, ...] | None:
        """See `Bearer`."""


class Bearer:
    """A request, as far as it shows whose session it may use."""

    def __init__(self, hooks: Hooks, scope: Scope, handshake: Callable[[], Handshake]) -> None:
        """
        Args:
            hooks: what of the site may read cookies.
            scope: of the request.
            handshake: returns the handshake of the request.
        """
        self._hooks = hooks
        self._scope = scope
        self._handshake = handshake
        self.set_cookie: tuple[bytes, bytes] | None = None
        """The header by which the response to the first request of a session sets its cookie."""

    @cached_property
    def handshake(self) -> Handshake:
        """What hooks get of the request."""
        return self._handshake()

    @cached_property
    def auth_session(self) -> str:
        """The auth session that the request bears; "" for none."""
        return self._hooks.auth_session_of(self.handshake)

    @cached_property
    def proofs(self) -> tuple[str, ...]:
        """Digests of what may show that the request is of the client that began a session."""
        headers = self._scope["headers"]
        texts = [value.decode("latin-1") for name, value in headers if name == b"cookie"]
        keys = [value for name, value in cookies(self._scope) if name == SESSION_COOKIE]
        credentials = "; ".join(texts), header(self._scope, b"authorization") or ""
        found = [_digest("cookie", key) for key in keys[:MAX_PROOFS]]
        return (*found, _digest("credentials", *credentials)) if any(credentials) else ()

    def begin(self) -> Owner:
        """Return the owner of a session that begins with this request; may set `set_cookie`."""
        if not self._hooks.wants_handshake or self.auth_session or not self.proofs:
            return Owner(self.auth_session)
        key = secrets.token_urlsafe(16)
        # it has no path, so browsers send it to the paths of this session alone, wherever a reverse
        # proxy has them
        value = f"{SESSION_COOKIE}={key}; Max-Age={COOKIE_LIFETIME}; HttpOnly"
        if header(self._scope, b"sec-fetch-site") == "cross-site":  # then it came by TLS
            value += "; SameSite=None; Secure"
        self.set_cookie = b"set-cookie", value.encode()
        return Owner("", (_digest("cookie", key), self.proofs[-1]))


class Owner(NamedTuple):
    """Whom a session belongs to."""

    auth_session: str = ""
    proofs: tuple[str, ...] = ()

    def sent(self, request: Shown) -> bool:
        """Return whether a request is of the owner."""
        if self.auth_session:
            auth_session = request.auth_session
            return auth_session is None or hmac.compare_digest(self.auth_session, auth_session)
        if not self.proofs:
            return True
        proofs = request.proofs
        return proofs is None or any(
            hmac.compare_digest(own, proof) for own in self.proofs for proof in proofs
        )


ANYONE = Owner()
"""Of a session that only its name protects."""


def _digest(*parts: str) -> str:
    encoded = "\0".join(parts).encode("latin-1", "replace")
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
