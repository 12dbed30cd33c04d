"""What a request holds by which a client begins."""

from __future__ import annotations

from collections.abc import Container
from urllib.parse import parse_qsl, urlencode

from realtime.errors import DisconnectBadRequest
from realtime.protocol.json_stream import Malformed
from realtime.protocol.messages import ConnectRequest
from realtime.protocol.v2.json_requests import decode_request
from realtime.transports.asgi import Scope

KEY = "cf_connect"
"""Field of the query that holds the first frame."""

EMPTY_REQUEST = b"{}"
"""The connect request of a unidirectional client that sends none."""


def frame_of_query(query: bytes) -> bytes:
    """Return the first frame that is in a query string; b"" if there is none."""
    return next((text.encode() for key, text in fields_of(query) if key == KEY), b"")


def has_field(scope: Scope, names: Container[str]) -> bool:
    """Return whether the query string has one of these fields."""
    return any(key in names for key, _ in fields_of(scope.get("query_string", b"")))


def hide_fields(scope: Scope, names: Container[str]) -> None:
    """Take fields, which may hold tokens, out of the query string."""
    rest = [
        (key, text) for key, text in fields_of(scope.get("query_string", b"")) if key not in names
    ]
    scope["query_string"] = urlencode(rest).encode()


def fields_of(query: bytes) -> list[tuple[str, str]]:
    """Return the fields of a query string, in their order."""
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True)


def is_connect_request(frame: bytes) -> bool:
    """Return whether a frame is the connect request of a unidirectional client."""
    try:
        decode_request(frame, ConnectRequest)
    except (Malformed, DisconnectBadRequest):
        return False
    return True
