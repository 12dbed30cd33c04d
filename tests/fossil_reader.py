"""A reader of deltas, written from the description of the format, and texts that change."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
_COMMAND = re.compile(rb"([0-9A-Za-z_~]+)([@:;])")


def number(digits: bytes) -> int:
    value = 0
    for digit in digits.decode():
        value = value * 64 + DIGITS.index(digit)
    return value


def commands(delta: bytes) -> tuple[int, list[tuple[str, Any]], int]:
    """Return the size of the result, the commands, and the checksum."""
    size, _, rest = delta.partition(b"\n")
    found: list[tuple[str, Any]] = []
    while True:
        match = _COMMAND.match(rest)
        assert match, rest
        value, kind = number(match[1]), match[2]
        rest = rest[match.end() :]
        if kind == b";":
            assert not rest
            return number(size), found, value
        if kind == b"@":
            offset, _, rest = rest.partition(b",")
            found.append(("copy", (number(offset), value)))
        else:
            found.append(("insert", rest[:value]))
            rest = rest[value:]


def apply(base: bytes, delta: bytes) -> bytes:
    """Return what a delta makes of a base."""
    size, found, checksum = commands(delta)
    parts = []
    for kind, value in found:
        if kind == "copy":
            offset, length = value
            assert offset + length <= len(base)
            parts.append(base[offset : offset + length])
        else:
            parts.append(value)
    result = b"".join(parts)
    assert len(result) == size
    padded = result + bytes(-len(result) % 4)
    words = (int.from_bytes(padded[i : i + 4], "big") for i in range(0, len(padded), 4))
    assert sum(words) % 2**32 == checksum
    return result


# objects, and what becomes of them

_names = st.sampled_from(["price", "näme", "<tag>", "日本", "🎲", "a"])
_values = (
    st.integers(-1000, 10**9)
    | st.floats(0, 1000)
    | st.text(max_size=20)
    | st.none()
    | st.booleans()
)
_rows = st.dictionaries(_names, _values, min_size=1)
objects = st.lists(_rows, min_size=1, max_size=30)
"""Data of publications."""


@st.composite
def changes(draw: st.DrawFn, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an object with some of its rows changed, added or removed."""
    rows: list[dict[str, Any]] = [dict(row) for row in before]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(rows)))
        match draw(st.sampled_from(["change", "add", "remove"])):
            case "add":
                rows.insert(place, draw(_rows))
            case "remove":
                del rows[place : place + draw(st.integers(1, 5))]
            case _ if place < len(rows):
                rows[place][draw(_names)] = draw(_values)
    return rows


def text(value: Any) -> bytes:
    """Return the text of a value as a publisher writes it."""
    return json.dumps(value, ensure_ascii=False).encode()
