"""Payload: one JSON value as bytes, checked once where it enters.

`data`, `conn_info` and `chan_info` stay bytes from the moment they enter the service until the
socket. The service does not parse or rewrite them on the way. A payload has two spellings:

- `raw`, as it entered, for Protobuf connections;
- `json`, for JSON frames: compact, so that it holds no line break (which would end the line of the
  frame), and with `<`, `>`, `&`, U+2028 and U+2029 escaped. Spelling of numbers, order of keys and
  duplicate keys stay as they are.

docs/protocol.md, 2.11. Beyond the spec: Centrifugo 2.8 writes JSON in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

_MUST_ESCAPE = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")
_LESS, _GREATER, _AMPERSAND, _SEPARATOR = b"<>&\xe2"
"""The first bytes of what must be escaped, as numbers."""
_ESCAPES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
}

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a surrogate pair
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"  # a lone surrogate
    rb"|\\."
)
_LONE_BYTES = 6
_REPLACEMENT = rb"\ufffd"


class Payload(msgspec.Struct, frozen=True, gc=False):
    """One valid JSON value in its two spellings, UTF-8 bytes."""

    raw: bytes
    json: bytes


def escape(text: bytes) -> bytes:
    """Escape the five characters that are not safe inside HTML or JavaScript.

    JSON text has them only inside strings, so it is right to replace them anywhere.
    """
    # many times as fast as to search for the expression. `in` finds a number at once; given bytes,
    # it raises and catches an exception before it looks for them
    if not (
        _LESS in text
        or _GREATER in text
        or _AMPERSAND in text
        or (_SEPARATOR in text and b"\xe2\x80" in text)
    ):
        return text
    return _MUST_ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)


def replace_lone_surrogates(text: bytes) -> bytes:
    """Replace lone surrogate escapes (`\\ud83d`) with U+FFFD.

    Browsers write them for text that was cut in the middle of an emoji. The grammar of JSON
    allows them, but they are not characters, and strict decoders refuse the whole value.
    """

    def replace(escape: re.Match[bytes]) -> bytes:
        return _REPLACEMENT if len(escape[0]) == _LONE_BYTES else escape[0]

    return _ESCAPE.sub(replace, text)


def check(raw: bytes) -> Payload:
    """Make a payload of bytes that claim to be JSON.

    Raises:
        ValueError: they are not one well-formed JSON value in UTF-8, or it is nested too deeply.
    """
    try:
        if not raw.isascii():
            raw.decode()
        text = _compact(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("not a JSON value") from None
    text = escape(text)
    return Payload(raw, raw if text == raw else text)


def from_object(value: object, other: Callable[[Any], Any] | None = None) -> Payload:
    """Make a payload of a Python object.

    Args:
        value: the object.
        other: returns a form of a value whose type msgspec does not know, or raises TypeError.

    Raises:
        TypeError: the object, or a part of it, has no JSON form: an unknown type, NaN, infinity or
            a lone surrogate.
        ValueError: it is nested too deeply.
    """
    try:
        text = msgspec.json.encode(value, enc_hook=other)
        if text.find(b"null") >= 0:  # `in` raises an exception before it looks for bytes
            # msgspec writes null for NaN and infinity, which would lose them silently
            plain = msgspec.to_builtins(value, enc_hook=partial(_plain, other))
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
        return msgspec.json.format(replace_lone_surrogates(raw), indent=-1)


def _plain(other: Callable[[Any], Any] | None, value: object) -> Any:
    """Return nothing for `msgspec.Raw`, which is JSON already, and the form of other types."""
    if isinstance(value, msgspec.Raw):
        return None
    if other is None:
        raise TypeError(f"objects of type {type(value).__name__}")
    return other(value)


def is_text(string: str) -> bool:
    """Return whether a string has a form in UTF-8: it has no lone surrogate."""
    if string.isascii():
        return True
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def site_text(what: str, value: object) -> str:
    """Check a text that the site's code passes, and return it as a plain string.

    Raises:
        TypeError: it is not a string, or has a lone surrogate, which no message can carry.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    if not is_text(value):
        raise TypeError(f"{what} must be text in UTF-8, without lone surrogates")
    return str.__str__(value)  # members of TextChoices and safe strings are more than text


def value(text: bytes | str) -> Any:
    """Decode the `json` of a payload.

    Numbers of JSON may have any size. One that is too large for a float becomes infinity.
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
