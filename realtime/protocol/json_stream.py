"""Read a stream of JSON objects: one frame of a client, or one body of the server API.

Values follow each other with any white space, or nothing, between them. Keys are matched
without regard to case, unknown keys are ignored, and `null` in a field means "not given".
The common cases (one value; one value a line; keys spelt as in the specification) are
decoded by msgspec in one pass; anything else is looked at again, slowly and exactly.

Spec: Framing of several messages in one frame.
Beyond the spec: white space, key case and null follow Centrifugo 2.8.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from realtime.payload import replace_lone_surrogates

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

_WHITE_SPACE = b" \t\r\n"
# Only where a value ends is asked; numbers of any length are not worth converting.
_scan_value = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Malformed(ValueError):
    """The bytes are not a stream of the expected objects."""


class ObjectDecoder(Generic[T]):
    """Decode one JSON object into struct `T`, whose field names are lower case.

    `T` must forbid unknown fields: an unknown key is what leads to the second look.
    """

    def __init__(self, shape: type[T]) -> None:
        self._decode = msgspec.json.Decoder(shape).decode
        self._fields: dict[str, msgspec.structs.FieldInfo] = {
            field.encode_name: field for field in msgspec.structs.fields(shape)
        }

    def __call__(self, text: bytes) -> T:
        """Decode `text`, which holds exactly one value.

        Raises:
            Malformed: not JSON, not an object, or a known field has the wrong type.
        """
        try:
            return self._decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        try:
            return self._decode(_fold(replace_lone_surrogates(text), self._fields))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Malformed("not the expected object") from None


def _fold(text: bytes, fields: dict[str, msgspec.structs.FieldInfo]) -> bytes:
    """Spell the keys of an object as the struct does, and leave out what it does not know.

    The values of a field that maps names to structs (`subs` of connect) are folded too.
    """
    folded: dict[str, msgspec.Raw] = {}
    for key, value in _read_object.decode(text).items():
        field = fields.get(key) or fields.get(key.lower())
        if field is None:
            continue
        if (inner := _struct_in_map(field.type)) and bytes(value) != b"null":
            inner_fields = {f.encode_name: f for f in msgspec.structs.fields(inner)}
            entries = _read_object.decode(value)
            for name, entry in entries.items():
                if bytes(entry) != b"null":
                    entries[name] = msgspec.Raw(_fold(bytes(entry), inner_fields))
            value = msgspec.Raw(msgspec.json.encode(entries))
        folded[field.encode_name] = value
    return msgspec.json.encode(folded)


def _struct_in_map(field_type: Any) -> type[msgspec.Struct] | None:
    """The struct `S` in a field of type `dict[str, S | None] | None`, else None."""
    info = msgspec.inspect.type_info(field_type)
    for option in info.types if isinstance(info, msgspec.inspect.UnionType) else (info,):
        if isinstance(option, msgspec.inspect.DictType):
            value = option.value_type
            for part in value.types if isinstance(value, msgspec.inspect.UnionType) else (value,):
                if isinstance(part, msgspec.inspect.StructType):
                    return part.cls
    return None


def decode_stream(text: bytes, decode: Callable[[bytes], V]) -> Iterator[V]:
    """Yield every value of the stream, decoded, in order.

    Lazy, so that the values before a malformed one are handled first.

    Raises:
        Malformed: at the first thing that is not a value `decode` accepts, or when the
            text is not UTF-8.
    """
    if b"\n" not in text.strip(_WHITE_SPACE):
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
    """As `decode_stream`, for values that do not keep to one line each."""
    # What is not UTF-8 becomes surrogates, which do not encode: the values before it do.
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


def method_number(method: int | str, names: dict[str, int]) -> int:
    """The number of a method given by number or by name in any letter case.

    A number outside the table is returned as it is; whether it exists is the next question.

    Raises:
        Malformed: a name that is not in the table.
    """
    if isinstance(method, str):
        try:
            return names[method.lower()]
        except KeyError:
            raise Malformed("unknown method name") from None
    return method
