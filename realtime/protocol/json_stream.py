"""Read a stream of JSON objects: one frame of a client, or one body of the server API.

Between two values there is any white space, or nothing. Keys match in any letter case, unknown keys
are ignored, and `null` in a field means that the field is absent. msgspec decodes the common cases
in one pass: one value, or one value per line, with keys spelt as in the protocol. Anything else is
decoded again, slowly and exactly.

docs/protocol.md, 2.3 and 2.5. Beyond the spec: white space, case of keys and null follow
Centrifugo 2.8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from realtime.payload import replace_lone_surrogates

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

_WHITE_SPACE = b" \t\r\n"
_LINE_FEED = 0x0A  # a number, because `in` finds it at once; given bytes it is slow
# Only the end of a value matters here, so numbers are not converted.
_scan_value = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_read_map = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw] | None])


class Malformed(ValueError):
    """The bytes are not a stream of the expected JSON objects."""


class ObjectDecoder(Generic[T]):
    """Decodes one JSON object into struct `T`, whose field names are lower case.

    `T` must forbid unknown fields: an unknown key makes the decoder try again with folded keys.
    """

    def __init__(self, shape: type[T], **maps: type[msgspec.Struct]) -> None:
        """
        Args:
            shape: `T`.
            maps: fields that map names to structs → such a struct. Keys of its objects are folded,
                too.
        """
        self._decode = msgspec.json.Decoder(shape).decode
        self._fields = _names_of(shape)
        self._maps = {field: _names_of(inner) for field, inner in maps.items()}

    def __call__(self, text: bytes) -> T:
        """Decode `text`, which holds exactly one value.

        Raises:
            Malformed: it is not JSON, not an object, or a known field has a wrong type.
        """
        try:
            return self._decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        try:
            return self._decode(_fold(replace_lone_surrogates(text), self._fields, self._maps))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Malformed("not the expected object") from None


def _names_of(shape: type[msgspec.Struct]) -> dict[str, str]:
    return {name: name for name in shape.__struct_fields__}


def _fold(text: bytes, names: dict[str, str], maps: dict[str, dict[str, str]]) -> bytes:
    """Spell the keys of an object as the struct does, and drop unknown keys."""
    folded: dict[str, msgspec.Raw] = {}
    for key, value in _read_object.decode(text).items():
        if known := names.get(key) or names.get(key.lower()):
            is_map = known in maps and bytes(value) != b"null"
            folded[known] = _fold_map(value, maps[known]) if is_map else value
    return msgspec.json.encode(folded)


def _fold_map(text: msgspec.Raw, names: dict[str, str]) -> msgspec.Raw:
    """Fold the values of an object. A client may send thousands, so there is one pass for all."""
    entries = {
        name: entry
        and {
            known: value
            for key, value in entry.items()
            if (known := names.get(key) or names.get(key.lower()))
        }
        for name, entry in _read_map.decode(text).items()
    }
    return msgspec.Raw(msgspec.json.encode(entries))


def decode_stream(text: bytes, decode: Callable[[bytes], V]) -> Iterator[V]:
    """Yield the decoded values of a stream in order.

    Lazy, so that the caller handles the values before a malformed one.

    Raises:
        Malformed: at the first value that `decode` does not accept, or that is not UTF-8.
    """
    if _LINE_FEED not in text.strip(_WHITE_SPACE):
        try:
            value = decode(text)
        except Malformed:
            yield from _decode_slowly(text, decode)
            return
        yield value
        return
    start = 0
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        line = text[start:end].strip(_WHITE_SPACE)
        if line:
            try:
                value = decode(line)
            except Malformed:
                yield from _decode_slowly(text[start:], decode)
                return
            yield value
        start = end


def _decode_slowly(text: bytes, decode: Callable[[bytes], V]) -> Iterator[V]:
    """As `decode_stream`, for values that are not one per line."""
    # bytes that are not UTF-8 become surrogates, which fail when their value is encoded again
    characters = text.decode(errors="surrogateescape")
    position = 0
    while True:
        while position < len(characters) and characters[position] in " \t\r\n":
            position += 1
        if position == len(characters):
            return
        try:
            _, end = _scan_value(characters, position)
            value = characters[position:end].encode()
        except (ValueError, RecursionError):
            raise Malformed("not JSON") from None
        yield decode(value)
        position = end


def method_number(method: int | str, names: Mapping[str, int]) -> int:
    """Return the number of a method that is given by number, or by name in any letter case.

    A number is returned as it is, even if no method has it.

    Raises:
        Malformed: no method has this name.
    """
    if isinstance(method, str):
        try:
            return names[method.lower()]
        except KeyError:
            raise Malformed("unknown method name") from None
    return method
