"""Frames as text for operators: JSON, without secrets, bounded in size.

What cannot be read is not shown at all, because a secret may be in it. Text in payloads is read,
too: JSON in a string loses its secrets, and what looks like a JWT is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError, Message

from realtime.protocol.codec import Codec
from realtime.protocol.protobuf_frames import split_frame
from realtime.protocol.v2 import client_pb2

MAX_BYTES = 64 * 1024
"""Bytes of a frame that is read; of a larger one only the size is shown."""
MAX_LENGTH = 4096
"""Characters that are shown."""

SECRET = "***"
"""In place of a secret."""
_SECRETS = re.compile(
    "token|passw|passphrase|pwd|secret|authori[sz]ation|cookie|session|credential|jwt|csrf"
    "|(api|access|private).?key|bearer|signature",
    re.IGNORECASE,
)
"""Names of secrets: of fields of the protocol, and of what a site sends."""
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*")
"""A JSON Web Token in a text. It begins where a word begins, so a search takes linear time."""
_ENCODED = frozenset(("b64data", "b64info"))
"""Fields whose text is base64: bytes that are not JSON."""
_PAYLOADS = frozenset(("data", "info", "conn_info", "chan_info", "tags")) | _ENCODED
"""Fields that hold what a site sends."""

_REQUESTS: Mapping[str, type[Message]] = {
    name.removesuffix("Request").lower(): kind
    for name, kind in vars(client_pb2).items()
    if name.endswith("Request")
}
"""Method → the request of a command, which is bytes in it."""

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"\s*")


def readable(codec: Codec, frame: bytes, *, from_client: bool, masked: bool) -> str:
    """Return a frame as text: its messages as JSON, with a space in between.

    Args:
        codec: of the connection.
        frame: its bytes.
        from_client: whether the client sent it.
        masked: leave payloads out.
    """
    if len(frame) > MAX_BYTES:
        return size_of(frame)
    try:
        if codec.format == "protobuf":
            messages = _protobuf(codec.generation, frame, from_client)
        else:
            messages = _json(frame.decode())
        return _cut(" ".join(_text(_hidden(message, masked)) for message in messages))
    except (ValueError, LookupError, RecursionError, DecodeError):
        return size_of(frame)


def readable_data(data: bytes, *, masked: bool) -> str:
    """Return JSON data of a publication as text."""
    if masked or len(data) > MAX_BYTES:
        return size_of(data)
    try:
        return _cut(_text(_hidden(json.loads(data), masked=False)))
    except (ValueError, RecursionError):
        return size_of(data)


def size_of(data: bytes) -> str:
    """Return the text in place of bytes that are not shown."""
    return f"({len(data)} bytes)"


def _hidden(value: Any, masked: bool) -> Any:
    """Return a decoded value without secrets, and without payloads if they are masked."""
    if isinstance(value, dict):
        return {name: _hidden_field(name, each, masked) for name, each in value.items()}
    if isinstance(value, list):
        return [_hidden(each, masked) for each in value]
    if isinstance(value, str):
        return _hidden_text(value, masked)
    return value


def _hidden_text(text: str, masked: bool) -> str:
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):  # else it is a text that only looks like JSON
            return _text(_hidden(json.loads(text), masked))
    return _JWT.sub(SECRET, text)


def _hidden_field(name: str, value: Any, masked: bool) -> Any:
    if _SECRETS.search(name) and value not in ("", None):
        return SECRET
    if name == "headers" and isinstance(value, dict):  # each may be one: a site chose their names
        return dict.fromkeys(value, SECRET)
    if name in _ENCODED and isinstance(value, str):
        return f"({len(value)} characters of base64)"
    if masked and name in _PAYLOADS:
        return size_of(_text(value).encode())
    return _hidden(value, masked)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace").decode()  # half a surrogate pair is no character


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def _json(text: str) -> Iterator[Any]:
    """Yield the values of a frame; raises ValueError."""
    position = _end_of_space(text, 0)
    while position < len(text):
        value, position = _decoder.raw_decode(text, position)
        yield value
        position = _end_of_space(text, position)


def _end_of_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _protobuf(generation: int, frame: bytes, from_client: bool) -> Iterator[Any]:
    """Yield the messages of a frame; raises ValueError.

    In the first generation they hold other messages as bytes, which are not read.
    """
    kind = client_pb2.Command if from_client else client_pb2.Reply
    for encoded in split_frame(frame):
        if generation == 1:
            yield {"bytes": len(encoded)}
        else:
            yield _fields(kind.FromString(encoded))


def _fields(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for descriptor, value in message.ListFields():
        name, is_payload = descriptor.name, descriptor.name in _PAYLOADS
        if isinstance(message, client_pb2.Command) and isinstance(value, bytes):
            value = _REQUESTS[name.replace("_", "")].FromString(value)
        if isinstance(value, Mapping):
            fields[name] = {str(key): _value(each, is_payload) for key, each in value.items()}
        elif isinstance(value, str | bytes | int | float | Message):
            fields[name] = _value(value, is_payload)
        else:
            fields[name] = [_value(each, is_payload) for each in value]
    return fields


def _value(value: Any, is_payload: bool) -> Any:
    if isinstance(value, Message):
        return _fields(value)
    if not isinstance(value, bytes):
        return value
    if not is_payload:
        return size_of(value)
    try:
        return json.loads(value)
    except ValueError:
        return size_of(value)
