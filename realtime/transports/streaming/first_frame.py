"""How a client begins that speaks through a request: who may, and what the request holds."""

from __future__ import annotations

from collections.abc import Container
from urllib.parse import parse_qsl, urlencode

from realtime.config import origins
from realtime.errors import DisconnectBadRequest
from realtime.node.node import Node
from realtime.protocol.json_stream import Malformed
from realtime.protocol.messages import ConnectRequest
from realtime.protocol.v2.json_requests import decode_request
from realtime.transports.asgi import Scope
from realtime.transports.handshake import handshake, header

KEY = "cf_connect"
"""Field of the query that holds the first frame."""

EMPTY_REQUEST = b"{}"
"""The connect request of a unidirectional client that sends none."""


def may_use(node: Node, scope: Scope) -> bool:
    """Return whether the page that sent a request may use the service.

    Without `allowed_origins` any page may, unless the site decides something, by login sessions,
    hooks or proxies, and may read cookies for it: then only pages of the same host may. Requests
    without an Origin do not come from scripts of other sites; what else a browser sends for a page
    of another site, such as the address of a picture, is refused.
    """
    origin = header(scope, b"origin")
    if origin is None:
        return header(scope, b"sec-fetch-site") in (None, "none", "same-origin")
    config = node.config
    if config.allowed_origins is not None:
        return origins.is_allowed(origin, config.allowed_origins)
    extra, site_headers = config.handshake_headers, node.hooks.site_headers
    return node.hooks.trusts_page(handshake(scope, "json", extra, site_headers=site_headers))


def frame_of_query(query: bytes) -> bytes:
    """Return the first frame that is in a query string; b"" if there is none."""
    return next((text.encode() for key, text in _fields(query) if key == KEY), b"")


def has_field(scope: Scope, names: Container[str]) -> bool:
    """Return whether the query string has one of these fields."""
    return any(key in names for key, _ in _fields(scope.get("query_string", b"")))


def hide_frame(scope: Scope) -> None:
    """Take the first frame, which may hold a token, out of the query string."""
    rest = [(key, text) for key, text in _fields(scope.get("query_string", b"")) if key != KEY]
    scope["query_string"] = urlencode(rest).encode()


def _fields(query: bytes) -> list[tuple[str, str]]:
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True)


def is_connect_request(frame: bytes) -> bool:
    """Return whether a frame is the connect request of a unidirectional client."""
    try:
        decode_request(frame, ConnectRequest)
    except (Malformed, DisconnectBadRequest):
        return False
    return True
