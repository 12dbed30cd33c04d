"""What peers send, where it has its usual form: a whole handshake, message or request.

The parsers of the servers take whatever the protocols allow, in pieces of any size, and that is
most of what a connection costs. Nearly everything that clients send comes in one piece and in one
form. It is read here, for a fraction of the cost. Anything else, and anything that is wrong, is
left to the parser of the server: nothing is refused here, so nothing can be accepted that the
server refuses.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from realtime.transports.asgi import Event

HEAD_MAX_BYTES = 8 * 1024
"""Larger heads are left to the server, and its limits."""
HEADERS_MAX = 64
"""And heads with more headers. The package websockets takes 128, Twisted 500."""

_REST_OF_HEAD = (
    rb" (/[-\w.~/]*)(?:\?([-\w.~/?:@!$&'()*+,;=%]*))? HTTP/1\.1\r\n"
    rb"((?:[-\w!#$%&'*+.^`|~]+: [!-~](?:[ -~]*[!-~])?\r\n)+)\r\n"
)
"""One spelling of each line: ASCII, one space, no header without value, no folded line."""
_GET = re.compile(rb"GET" + _REST_OF_HEAD, re.ASCII)
_POST = re.compile(rb"POST" + _REST_OF_HEAD, re.ASCII)

_PORT = rb"\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]"
_AUTHORITY = rb"[-\w.]+(?::(?:" + _PORT + rb"))?"

_REQUIRED = {
    b"host": re.compile(_AUTHORITY, re.ASCII),
    b"upgrade": re.compile(rb"websocket", re.IGNORECASE),
    b"connection": re.compile(rb"(?:keep-alive, ?)?upgrade(?:, ?keep-alive)?", re.IGNORECASE),
    b"sec-websocket-version": re.compile(rb"13"),
    b"sec-websocket-key": re.compile(rb"[a-zA-Z0-9+/]{22}=="),
}
_OPTIONAL = {
    b"origin": re.compile(rb"null|https?://" + _AUTHORITY, re.ASCII),
    b"sec-websocket-protocol": re.compile(rb"[-\w.]+", re.ASCII),
    b"sec-websocket-extensions": re.compile(
        rb"permessage-deflate(?:; server_no_context_takeover)?(?:; client_no_context_takeover)?"
        rb"(?:; client_max_window_bits)?"
    ),
}
"""Header → the values that are usual."""
_FORBIDDEN = (b"content-length", b"transfer-encoding", b"expect")
"""Headers of requests that have more than a head."""

_REQUIRED_OF_POST = {
    b"host": _REQUIRED[b"host"],
    b"content-length": re.compile(rb"0|[1-9]\d{0,4}", re.ASCII),
}
_OPTIONAL_OF_POST = {b"connection": re.compile(rb"keep-alive", re.IGNORECASE)}
_FORBIDDEN_IN_POST = (b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer")

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455, 1.3."""

MESSAGE_MAX_BYTES = 64 * 1024
"""Larger messages are not plain where there is no other limit."""

_FIN_TEXT = 0x81
_FIN_BINARY = 0x82
_MASKED = 0x80
_TWO_BYTES = 126
"""The length that says that the next two bytes are the length."""


class PlainHandshake(NamedTuple):
    """The head of a request that opens a WebSocket."""

    path: str
    query: bytes
    headers: dict[bytes, bytes]
    """By their names in lower case, in the order of the request. No name comes twice."""

    @property
    def subprotocols(self) -> list[str]:
        """What the client offers to speak."""
        offered = self.headers.get(b"sec-websocket-protocol")
        return [] if offered is None else [offered.decode()]

    @property
    def accept(self) -> bytes:
        """The value of the header Sec-WebSocket-Accept."""
        digest = hashlib.sha1(self.headers[b"sec-websocket-key"] + _MAGIC, usedforsecurity=False)
        return base64.b64encode(digest.digest())


def plain_handshake(data: bytes) -> PlainHandshake | None:
    """Return the handshake that these bytes are; None if they have another form.

    Args:
        data: the first bytes of a connection.
    """
    if len(data) > HEAD_MAX_BYTES or (match := _GET.fullmatch(data)) is None:
        return None
    path, query, lines = match.groups()
    headers = _headers(lines, _REQUIRED, _OPTIONAL, _FORBIDDEN)
    return None if headers is None else PlainHandshake(path.decode(), query or b"", headers)


class PlainPost(NamedTuple):
    """A whole request with the method POST, on a connection that stays."""

    path: str
    query: bytes
    headers: dict[bytes, bytes]
    """By their names in lower case, in the order of the request. No name comes twice."""
    body: bytes


def plain_post(data: bytes) -> PlainPost | None:
    """Return the request that these bytes are; None if they have another form.

    Args:
        data: what came where a request may begin.
    """
    match = _POST.match(data)
    if match is None or match.end() > HEAD_MAX_BYTES:
        return None
    path, query, lines = match.groups()
    headers = _headers(lines, _REQUIRED_OF_POST, _OPTIONAL_OF_POST, _FORBIDDEN_IN_POST)
    body = data[match.end() :]
    if headers is None or int(headers[b"content-length"]) != len(body):
        return None
    return PlainPost(path.decode(), query or b"", headers, body)


Values: TypeAlias = Mapping[bytes, re.Pattern[bytes]]
"""Header → its usual values."""


def _headers(
    lines: bytes, required: Values, optional: Values, forbidden: Iterable[bytes]
) -> dict[bytes, bytes] | None:
    """Return the headers of a head by their names in lower case; None if they are not usual."""
    headers: dict[bytes, bytes] = {}
    count = 0
    for line in lines.splitlines():
        name, _, value = line.partition(b": ")
        headers[name.lower()] = value
        count += 1
    if len(headers) != count or count > HEADERS_MAX or not headers.keys().isdisjoint(forbidden):
        return None
    for name, usual in required.items():
        if usual.fullmatch(headers.get(name, b"")) is None:
            return None
    for name, usual in optional.items():
        if name in headers and usual.fullmatch(headers[name]) is None:
            return None
    return headers


def plain_events(data: bytes, limit: int | None) -> list[Event] | None:
    """Return the events of the messages that these bytes are, each in one masked frame.

    Args:
        data: what came where a frame may begin.
        limit: largest size of a message in bytes; 0 and None for no limit.

    Returns:
        None if they have another form.
    """
    events: list[Event] = []
    begin, size, limit = 0, len(data), limit or MESSAGE_MAX_BYTES
    while begin < size:
        if size - begin < 6:
            return None
        first, length, start = data[begin], data[begin + 1] - _MASKED, begin + 6
        if length == _TWO_BYTES and size - begin >= 8:
            length, start = int.from_bytes(data[begin + 2 : begin + 4]), begin + 8
            if length < _TWO_BYTES:
                return None
        elif not 0 <= length < _TWO_BYTES:
            return None
        end = start + length
        if first not in (_FIN_TEXT, _FIN_BINARY) or end > size or length > limit:
            return None
        mask = (data[start - 4 : start] * (length // 4 + 1))[:length]
        payload = (int.from_bytes(data[start:end]) ^ int.from_bytes(mask)).to_bytes(length)
        if first == _FIN_BINARY:
            events.append({"type": "websocket.receive", "bytes": payload})
        else:
            try:
                events.append({"type": "websocket.receive", "text": payload.decode()})
            except UnicodeDecodeError:
                return None
        begin = end
    return events


def are_frames(data: bytes) -> bool:
    """Return whether these bytes end where a frame ends, if one begins where they begin."""
    begin, size = 0, len(data)
    while size - begin >= 2:
        length, start = data[begin + 1] % _MASKED, begin + 2
        if data[begin + 1] >= _MASKED:
            start += 4
        if length >= _TWO_BYTES:
            width = 2 if length == _TWO_BYTES else 8
            length, start = int.from_bytes(data[begin + 2 : begin + 2 + width]), start + width
        begin = start + length
    return begin == size
