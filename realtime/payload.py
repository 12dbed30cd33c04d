"""Payload: one JSON value as bytes, checked once where it enters.

`data`, `conn_info` and `chan_info` stay bytes from the moment they enter the service to
the socket; nobody parses or rewrites them on the way. Two spellings exist: `raw`, as it
entered, for Protobuf connections; and `json`, which is spliced into JSON frames: compact
(so it holds no line break, which would end the frame's line) and with `<`, `>`, `&`,
U+2028 and U+2029 escaped. Number spelling, key order and duplicate keys are kept.

Beyond the spec: Centrifugo 2.8 splices in the same way.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_MUST_ESCAPE = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_ESCAPES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
}

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"  # half of one
    rb"|\\."
)
_HALF_BYTES = 6
_REPLACEMENT = rb"\ufffd"


class Payload(msgspec.Struct, frozen=True, gc=False):
    """One valid JSON value in its two spellings, UTF-8 bytes."""

    raw: bytes
    json: bytes


def escape(text: bytes) -> bytes:
    """Escape the five characters that are not safe inside HTML or JavaScript.

    In JSON text they can stand only inside strings, so replacing them anywhere is right.
    """
    if _MUST_ESCAPE.search(text) is None:
        return text
    return _MUST_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def mend_surrogates(text: bytes) -> bytes:
    """Replace halves of surrogate pairs in escapes, such as `\\ud83d` alone, by U+FFFD.

    Browsers write them for text that was cut in the middle of an emoji. JSON's grammar
    allows them, but they are no characters, and strict decoders refuse the whole value.
    """

    def mend(escape: re.Match[bytes]) -> bytes:
        return _REPLACEMENT if len(escape[0]) == _HALF_BYTES else escape[0]

    return _ESCAPE.sub(mend, text)


def check(raw: bytes) -> Payload:
    """Accept `raw` as a payload.

    Raises:
        ValueError: not one well-formed JSON value in UTF-8, or nested too deeply to be
            handled safely.
    """
    try:
        if not raw.isascii():
            raw.decode()
        text = _compact(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("not a JSON value") from None
    text = escape(text)
    return Payload(raw, raw if text == raw else text)


def from_object(value: object) -> Payload:
    """Encode a Python object once.

    Raises:
        TypeError: the object, or something in it, has no JSON form: an unknown type, NaN or
            infinity, half of a surrogate pair.
        ValueError: nested too deeply.
    """
    try:
        text = msgspec.json.encode(value)
        if b"null" in text:
            # msgspec writes null for NaN and infinity, which would be a silent loss
            plain = msgspec.to_builtins(value, enc_hook=_ready_made)
            json.dumps(plain, allow_nan=False)
    except RecursionError:
        raise ValueError("not a JSON value: nested too deeply") from None
    except ValueError as error:
        raise TypeError(f"this has no JSON form: {error}") from None
    return check(text)


def _compact(raw: bytes) -> bytes:
    try:
        return msgspec.json.format(raw, indent=-1)
    except msgspec.MsgspecError:
        return msgspec.json.format(mend_surrogates(raw), indent=-1)


def _ready_made(value: object) -> None:
    """Stands in for `msgspec.Raw`, which is JSON already."""
    if not isinstance(value, msgspec.Raw):
        raise TypeError(f"objects of type {type(value).__name__}")


def value(text: bytes | str) -> Any:
    """The `json` of a payload as Python has it.

    JSON's numbers may be of any size: those too large for a float are infinite here.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python limits the digits of integers it reads
        return float(digits)
