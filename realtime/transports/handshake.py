"""The request a client's connection begins with, as far as the service wants to know."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs

from realtime.node.hooks import FORWARDED_HEADERS, Handshake
from realtime.transports.asgi import Scope

HEADERS_MAX_BYTES = 32 * 1024
"""Of a handshake: what connections keep of it must not add up. daphne takes half of that,
uvicorn with websockets-sansio a megabyte."""


def has_too_many_headers(scope: Scope) -> bool:
    """Whether the headers of a request are larger than `HEADERS_MAX_BYTES`."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    return size > HEADERS_MAX_BYTES


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of this lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


def handshake(
    scope: Scope,
    format_name: str,
    extra: Sequence[str] | None,
    *,
    transport: str = "websocket",
) -> Handshake:
    """What hooks may want to know of a connection later. `extra`: more headers to keep."""
    wanted = {*FORWARDED_HEADERS, *(name.lower() for name in extra or ())}
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        if name in wanted:
            text = value.decode("latin-1")
            # several of a name are one list (RFC 9110, 5.3); cookies have their own comma
            separator = "; " if name == "cookie" else ", "
            headers[name] = f"{headers[name]}{separator}{text}" if name in headers else text
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    encoding = "binary" if query.get("encoding", [""])[0] == "binary" else "json"
    return Handshake(headers, header(scope, b"host") or "", format_name, encoding, transport)
