"""Protobuf frames: messages of every generation, each behind its length, a varint.

docs/protocol.md, 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

_MAX_VARINT_BYTES = 10


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
