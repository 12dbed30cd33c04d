"""Deltas in the format of Fossil: what changed between two texts.

    delta     size of the result, line feed, commands, checksum of the result, ";"
    command   <n>@<offset>,     copy n bytes of the base
              <n>:<n bytes>     insert bytes

Numbers are in base 64. A delta between texts in UTF-8 is such a text itself: no command begins or
ends inside a character.

The encoder copies the common beginning and end, finds a piece of what is left in the base, and does
the same on both sides of it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from itertools import product

WORTH = 0.6
"""A delta may have this part of the size of the whole text."""
MAX_BYTES = 262_144
"""Longer texts are sent whole: their deltas would hold up the event loop."""

_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
_ANCHORS = (192, 24)
"""Bytes of the pieces that are looked for: long ones first, because they are rarer."""
_PLACES = (0.47, 0.29, 0.83)
"""Where they are taken from: odd parts, because changes often have equal distances."""
_DEPTH = 6
_END = 7
"""Bytes of the checksum and its mark, at most."""
_LEAST = 8
"""Shorter copies are inserted: a command is not shorter."""
_LAST = 64
"""Bytes that are compared as numbers: faster than to halve them on."""


def delta(base: bytes, text: bytes) -> bytes | None:
    """Return what makes a text of a base; None where the whole text is better."""
    if max(len(base), len(text)) > MAX_BYTES:
        return None
    parts = [_number(len(text)), b"\n"]
    for offset, part in _pieces(base, text, 0, _DEPTH):
        if offset is None:
            parts += (_number(len(part)), b":", part)
        else:
            parts += (_number(len(part)), b"@", _number(offset), b",")
    if sum(map(len, parts)) + _END > len(text) * WORTH:
        return None
    return b"".join((*parts, _number(_checksum(text)), b";"))


def _pieces(
    base: bytes, text: bytes, offset: int, depth: int
) -> Iterator[tuple[int | None, bytes]]:
    """Yield the parts of a text, each with its offset in the base; None for new ones.

    Args:
        base: where the parts may come from.
        text: the text, or a part of it.
        offset: the place of `base` in the whole base.
        depth: how often the text may still be divided.
    """
    begin = _boundary(text, _common(base, text))
    begin = begin if begin >= _LEAST else 0
    end = _boundary(text, len(text) - _common(base[begin:][::-1], text[begin:][::-1]), 1)
    end = end if len(text) - end >= _LEAST else len(text)
    rest, middle = base[begin : len(base) - len(text) + end], text[begin:end]
    if begin:
        yield offset, text[:begin]
    if middle:
        found = _find(rest, middle) if depth else None
        if found is None:
            yield None, middle
        else:
            at, place = found
            yield from _pieces(rest[:at], middle[:place], offset + begin, depth - 1)
            yield from _pieces(rest[at:], middle[place:], offset + begin + at, depth - 1)
    if end < len(text):
        yield offset + len(base) - len(text) + end, text[end:]


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while high - low > _LAST:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    unlike = int.from_bytes(one[low:high]) ^ int.from_bytes(other[low:high])
    return high - (unlike.bit_length() + 7) // 8


def _find(base: bytes, text: bytes) -> tuple[int, int] | None:
    """Find a piece of a text in a base. Return where the piece is there, and in the text."""
    for size, part in product(_ANCHORS, _PLACES):
        if (spare := len(text) - size) < 0:
            continue
        place = _boundary(text, int(spare * part))
        piece = text[place : place + size]
        # near the same place first, because texts repeat themselves
        for begin in (max(0, place - size - abs(len(base) - len(text))), 0):
            if (at := base.find(piece, begin)) >= 0:
                return at, place
    return None


def _boundary(text: bytes, place: int, step: int = -1) -> int:
    """Return the next place that is not inside a character of UTF-8, `step` by `step`."""
    for _ in range(3):
        if not (0 < place < len(text) and text[place] & 0xC0 == 0x80):
            break
        place += step
    return place


def _number(value: int) -> bytes:
    last = _DIGITS[value % 64 : value % 64 + 1]
    return last if value < 64 else _number(value // 64) + last


def _checksum(text: bytes) -> int:
    words = array("I", text + b"\0" * (-len(text) % 4))
    if sys.byteorder == "little":
        words.byteswap()
    return sum(words) & 0xFFFF_FFFF
