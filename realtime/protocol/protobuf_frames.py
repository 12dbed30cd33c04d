"""Protobuf frames: messages of every generation, each behind its length, a varint.

docs/protocol.md, 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

_MAX_VARINT_BYTES = 10

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
"""The wire types of a field."""
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def frame_message(message: bytes) -> bytes:
    """Put its length in front of an encoded message."""
    length = len(message)
    if length < 0x80:
        return b"%c%b" % (length, message)
    prefix = bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + message


def split_frame(frame: bytes) -> Iterator[bytes]:
    """Yield the messages of a frame.

    Raises:
        ValueError: a length is malformed or reaches past the end of the frame.
    """
    position, end = 0, len(frame)
    while position < end:
        length = frame[position]
        position += 1
        if length > 0x7F:
            length, position = _read_varint(frame, position - 1)
        if length > end - position:
            raise ValueError("truncated message")
        yield frame[position : position + length]
        position += length


def field_numbers(message: bytes) -> Iterator[int]:
    """Yield the numbers of the fields of a message, in order; values are skipped.

    Raises:
        ValueError: the message is malformed, or has groups, which no client sends.
    """
    position, end = 0, len(message)
    while position < end:
        tag, position = _read_varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            _, position = _read_varint(message, position)
        elif wire_type == _LENGTH:
            length, position = _read_varint(message, position)
            position += length
        elif wire_type in _SIZES:
            position += _SIZES[wire_type]
        else:
            raise ValueError("unknown wire type")
        if number == 0 or position > end:
            raise ValueError("malformed field")
        yield number


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position, and the position behind it.

    Raises:
        ValueError: it is cut short, or too long.
    """
    value = shift = 0
    for byte in data[position : position + _MAX_VARINT_BYTES]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("varint is cut short or too long")
