"""Deltas in Fossil's format: what published clients make of them, and what they cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from centrifuge.fossil import apply_delta
from hypothesis import given
from hypothesis import strategies as st

from realtime.protocol import fossil
from tests import fossil_reader

ROWS: list[dict[str, Any]] = [{"id": row, "price": row * 1.5, "name": "näme€"} for row in range(60)]


def text(rows: Any) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode()


def changed(**values: Any) -> bytes:
    return text([row | values if row["id"] == 30 else row for row in ROWS])


def check(base: bytes, wanted: bytes) -> bytes | None:
    """Make a delta, and read it with both readers."""
    delta = fossil.delta(base, wanted)
    if delta is not None:
        assert fossil_reader.apply(base, delta) == wanted
        assert bytes(apply_delta(base, delta)) == wanted
        assert len(delta) <= len(wanted) * fossil.WORTH
    return delta


@given(st.data())
def test_published_reader_gets_the_text(data: st.DataObject) -> None:
    before = data.draw(fossil_reader.objects)
    base = text(before)
    wanted = text(data.draw(fossil_reader.changes(before)))
    delta = check(base, wanted)
    if delta is not None:
        assert fossil_reader.commands(delta)[0] == len(wanted)
        delta.decode()


@given(st.binary(max_size=400), st.binary(max_size=400), st.binary(max_size=60))
def test_any_bytes_are_right(base: bytes, other: bytes, piece: bytes) -> None:
    check(base, other)
    check(base, base + piece)
    check(base, base[: len(base) // 2] + piece + base[len(base) // 2 :])
    check(base + piece + other, other + base)


@given(st.text(min_size=1, max_size=300), st.text(max_size=5), st.data())
def test_no_command_cuts_a_character(base: str, piece: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(base)))
    delta = check(base.encode(), (base[:place] + piece + base[place + 1 :]).encode())
    if delta is not None:
        for kind, value in fossil_reader.commands(delta)[1]:
            assert kind == "copy" or value.decode()


def test_characters_with_common_bytes_are_inserted_whole() -> None:
    base, wanted = ("x" * 50 + one + "y" * 50 for one in ("é", "è"))
    delta = check(base.encode(), wanted.encode())
    assert delta is not None
    assert ("insert", "è".encode()) in fossil_reader.commands(delta)[1]


@pytest.mark.parametrize(
    ("wanted", "most"),
    [
        (text(ROWS), 20),
        (changed(price=7.25), 50),
        (changed(name="other"), 60),
        (text(ROWS[1:]), 20),
        (text([*ROWS, {"id": 60}]), 40),
        (text([*ROWS[:20], {"id": 60}, *ROWS[21:40], *ROWS[45:]]), 100),
    ],
    ids=["equal", "number", "text", "first gone", "one more", "three places"],
)
def test_small_changes_are_small_deltas(wanted: bytes, most: int) -> None:
    delta = check(text(ROWS), wanted)
    assert delta is not None
    assert len(delta) <= most


def test_many_changes_in_a_long_text() -> None:
    rows = [{"id": row, "name": f"name {row % 7}", "price": 1.5} for row in range(4000)]
    later = [row | {"price": 99.25} if at % 400 == 7 else row for at, row in enumerate(rows)]
    delta = check(text(rows), text(later))
    assert delta is not None
    assert len(delta) < 300


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (b"", b""),
        (b"1", b"2"),
        (b"", text(ROWS)),
        (text(ROWS), b"{}"),
        (b"a" * 1000, b"b" * 1000),
        (b"x" * 100, b"x" * 100 + b"y" * 200),
        (b"a" * (fossil.MAX_BYTES + 1), b"a" * (fossil.MAX_BYTES + 1)),
    ],
    ids=["empty", "short", "no base", "shorter than a delta", "others", "above 60 %", "too long"],
)
def test_whole_text_where_a_delta_is_not_worth_it(base: bytes, wanted: bytes) -> None:
    assert fossil.delta(base, wanted) is None
