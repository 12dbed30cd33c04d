"""What a request says of its client: which page sent it, from where, and what the service keeps.

Which pages may use the service is one rule for the requests of every transport, `may_use`:

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

from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from urllib.parse import parse_qs, urlsplit

import msgspec

from realtime.config import origins
from realtime.config.options import Config
from realtime.node.hooks import NO_HANDSHAKE, Handshake, Hooks, forwarded_headers
from realtime.node.limits.admission import NotAdmitted
from realtime.node.node import Node
from realtime.transports.asgi import UNAVAILABLE, Exchange, Headers, Scope, cookies, header

HEADERS_MAX_BYTES = 32 * 1024
"""Limit for all headers of a handshake, because each connection keeps some of them. daphne allows
half of it by itself, uvicorn with websockets-sansio a megabyte."""

CREDENTIALS = ("cookie", "authorization")
"""What browsers add to a request for their user, whichever page sends it."""

HEAD_TIMEOUT = 10.0
"""Seconds that the head of an HTTP request may take, and the first one from the connection on."""

SESSION_COOKIE = "realtime_session"
"""A cookie that the service sets itself; see `emulation.owning_client`. It names no user, so a
program that keeps it is no browser for that."""

NO_SITE = "null"
"""The origin that no site has."""


# which pages may use the service


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
    return hooks.trusts_page(_of_site(hooks, scope, {"origin": origin}))


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


def _of_site(hooks: Hooks, scope: Scope, headers: Mapping[str, str]) -> Handshake:
    """Return a handshake with these headers, and what says whether a page has its host."""
    found = {name: header(scope, name.encode("latin-1")) for name in hooks.site_headers}
    return Handshake(
        headers,
        header(scope, b"host") or "",
        site_headers={name: value for name, value in found.items() if value is not None},
        is_secure=scope.get("scheme") in ("https", "wss"),
    )


# what is kept


def has_too_many_headers(scope: Scope) -> bool:
    """Return whether the headers of a request are larger than `HEADERS_MAX_BYTES`."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    return size > HEADERS_MAX_BYTES


def address_of(scope: Scope, proxies: int) -> str:
    """Return the address of the client that sent a request; "" if it is not known.

    Args:
        proxies: see `client_address`.
    """
    peer = scope.get("client")
    forwarded = (value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return client_address(
        str(peer[0]) if peer else "", b",".join(forwarded).decode("latin-1"), proxies
    )


def client_address(peer: str, forwarded: str, proxies: int) -> str:
    """Return the address of a client; "" if it is not known.

    Some servers put an entry of X-Forwarded-For in place of the peer's address: uvicorn does for
    every peer on the same host. A client may have written it, so such an address is not known.
    Clients whose address is not known count as one client wherever an address has a limit.

    Of X-Forwarded-For only the entries of our own proxies are trusted: each appends the address of
    its client, and everything before can be written by that client. Where their entry is missing
    or no address, the client's is not known: the peer is a proxy.

    Args:
        peer: what the server says is the address of the peer.
        forwarded: the header X-Forwarded-For, "" if it is missing.
        proxies: reverse proxies that append to that header; 0: it is not trusted.
    """
    entries = [entry.strip() for entry in forwarded.split(",")] if forwarded else []
    if proxies and entries:
        return _entry_address(entries[-proxies]) if len(entries) >= proxies else ""
    if any(_names(entry, peer) for entry in entries):
        return ""
    return _ip_address(peer)


def _names(entry: str, address: str) -> bool:
    """Return whether an entry of X-Forwarded-For is this address, with or without a port."""
    return address in (entry, entry.strip("[]"), entry.rpartition(":")[0].strip("[]"))


def _entry_address(entry: str) -> str:
    """Return the IP address of an entry, which some proxies write with a port; "" without one."""
    if entry.startswith("["):
        return _ip_address(entry[1:].partition("]")[0])
    return _ip_address(entry.partition(":")[0] if entry.count(":") == 1 else entry)


def _ip_address(text: str) -> str:
    """Return an IP address without a scope; "" for other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address).partition("%")[0]


def handshake(hooks: Hooks, scope: Scope, extra: Sequence[str] | None) -> Handshake:
    """Return what hooks and proxies get of a request.

    Args:
        hooks: the hooks of the site, which may read headers of their own.
        scope: the scope of the request.
        extra: see `forwarded_headers`.
    """
    forwarded = forwarded_headers(extra)
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in forwarded:
            text = value.decode("latin-1")
            # several of a name are one list (RFC 9110, 5.3); cookies have a separator of their own
            separator = "; " if name == "cookie" else ", "
            headers[name] = f"{headers[name]}{separator}{text}" if name in headers else text
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    encoding = "binary" if query.get("encoding", [""])[0] == "binary" else "json"
    return msgspec.structs.replace(_of_site(hooks, scope, headers), encoding=encoding)


def kept_of(node: Node, scope: Scope, format_name: str, transport: str, address: str) -> Handshake:
    """Return what a node keeps of a handshake: nothing of the request where no hook wants more.

    Args:
        format_name: "json" or "protobuf".
        transport: see `outbox.Transport.name`.
        address: of the client, see `address_of`.
    """
    opening = NO_HANDSHAKE
    if node.hooks.wants_handshake:
        opening = handshake(node.hooks, scope, node.config.handshake_headers)
    return msgspec.structs.replace(
        opening, protocol=format_name, transport=transport, address=address
    )


def without_credentials(opening: Handshake) -> Handshake:
    """Return a handshake whose credentials hooks and proxies do not see."""
    headers = dict(opening.headers)
    withheld = {name: headers.pop(name) for name in CREDENTIALS if name in headers}
    return msgspec.structs.replace(opening, headers=headers, withheld=withheld)


def request_handshake(
    node: Node, scope: Scope, transport: str, format_name: str = "json"
) -> Handshake:
    """Return what hooks get of an ordinary HTTP request that begins a connection.

    A page of any origin can have browsers send it with cookies. Without the header Origin it gets
    the one that `implied_origin` returns, so its cookies count only if a page of the same origin
    sent it.

    Args:
        transport: see `outbox.Transport.name`.
        format_name: "json" or "protobuf".
    """
    address = address_of(scope, node.config.trusted_proxies)
    result = kept_of(node, scope, format_name, transport, address)
    if not node.hooks.wants_handshake or "origin" in result.headers:
        return result
    if (origin := implied_origin(scope)) is None:
        return result
    return msgspec.structs.replace(result, headers={**result.headers, "origin": origin})


def cors(scope: Scope, origin: str) -> list[tuple[bytes, bytes]]:
    """Return the headers that let pages of an origin read the response to a request.

    Args:
        origin: "" if the request has none: then no page asks, and there are no headers.
    """
    if not origin:
        return []
    headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
    ]
    requested = header(scope, b"access-control-request-headers")
    if requested:
        headers.append((b"access-control-allow-headers", requested.encode("latin-1")))
    return headers


def come_later(refused: NotAdmitted) -> tuple[bytes, bytes]:
    """Return the header that says when a peer may come back."""
    return b"retry-after", b"%d" % refused.retry_after


async def respond_later(exchange: Exchange, refused: NotAdmitted, headers: Headers = ()) -> None:
    """Answer a request that would begin a connection which the process does not take now."""
    fields = [come_later(refused), *headers]
    await exchange.respond(*UNAVAILABLE, "text/plain; charset=utf-8", fields)
