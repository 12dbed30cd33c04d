"""Which pages may use the service: one rule for the requests of every transport.

    the request                                    the page that sent it
    a browser opens its URL as a page              refused
    it has the header Origin                       that origin
    a WebSocket without Origin                     none: browsers always send it
    no Sec-Fetch-Site, and no cookie that counts   none: a program
    Sec-Fetch-Site: same-origin                    one of the same origin
    another Sec-Fetch-Site                         refused
    a cookie, and nothing of the above             the origin in Referer; refused without

A page may use the service if `allowed_origins` has its origin. Where that option is not set, pages
of the same host may, or any page if neither login sessions nor hooks nor proxies read cookies.

docs/protocol.md, 10.7.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from realtime.config import origins
from realtime.config.options import Config
from realtime.node.hooks import Handshake, Hooks
from realtime.transports.asgi import Scope, cookies, header

SESSION_COOKIE = "realtime_session"
"""A cookie that the service sets itself; see `emulation.ownership`. It names no user, so a program
that keeps it is no browser for that."""

NO_SITE = "null"
"""The origin that no site has."""


def may_use(config: Config, hooks: Hooks, scope: Scope, *, own_pages: bool = False) -> bool:
    """Return whether the page that sent a request may use the service, or none did.

    Args:
        config: the options in force.
        hooks: what of the site may read cookies.
        scope: of the request.
        own_pages: pages of the same origin may, whether or not `allowed_origins` has it.
    """
    is_socket = scope["type"] == "websocket"
    if not is_socket and header(scope, b"sec-fetch-dest") == "document":
        return False
    patterns = config.allowed_origins
    if patterns is None and not hooks.wants_handshake:
        return True
    origin = header(scope, b"origin")
    if origin is None:
        if is_socket or _is_of_a_program(hooks, scope):
            return True
        origin = implied_origin(scope)
        if origin is None or origin == NO_SITE:
            return origin is None
    if own_pages and _is_own(scope, origin):
        return True
    if patterns is not None:
        return origins.is_allowed(origin, patterns)
    return hooks.trusts_page(_handshake_of(hooks, scope, origin))


def _is_of_a_program(hooks: Hooks, scope: Scope) -> bool:
    """Return whether a request without Origin is none of a browser, or brings nothing of its user.

    Browsers say nothing of the page to a service without TLS.
    """
    if header(scope, b"sec-fetch-site") is not None:
        return False
    if not hooks.wants_handshake:
        return True
    return all(name == SESSION_COOKIE for name, value in cookies(scope) if name or value)


def implied_origin(scope: Scope) -> str | None:
    """Return the origin of the page that sent a request without the header Origin.

    Browsers send none with navigations, scripts, frames and GET requests of the same origin. So a
    link on another site, which sends cookies along, looks like a request of a page of this one.

    Returns:
        - None, if the browser says that a page of the same origin sent the request.
        - The origin in the header Referer, if the browser says nothing else.
        - `NO_SITE` in any other case.
    """
    site = header(scope, b"sec-fetch-site")
    if site is not None:
        return None if site == "same-origin" else NO_SITE
    try:
        scheme, netloc, *_ = urlsplit(header(scope, b"referer") or "")
    except ValueError:
        return NO_SITE
    return f"{scheme}://{netloc}" if scheme and netloc else NO_SITE


def _is_own(scope: Scope, origin: str) -> bool:
    site = header(scope, b"sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return origin.lower().partition("://")[2] == (header(scope, b"host") or "").lower() != ""


def _handshake_of(hooks: Hooks, scope: Scope, origin: str) -> Handshake:
    """Return what of a request says whether a page has its host."""
    found = {name: header(scope, name.encode("latin-1")) for name in hooks.site_headers}
    return Handshake(
        {"origin": origin},
        header(scope, b"host") or "",
        site_headers={name: value for name, value in found.items() if value is not None},
        is_secure=scope.get("scheme") in ("https", "wss"),
    )
