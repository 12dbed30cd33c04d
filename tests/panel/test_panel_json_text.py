"""How the panel lays out JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from admin_panel import json_text as module
from admin_panel.json_text import LONGEST, ONE_LINE, PREVIEW, UNFOLDED_LINES, json_text
from realtime.payload import check

AS_PUBLISHED = [
    (b'{"b":1.0,"a":12345678901234567890123}', '{"b": 1.0, "a": 12345678901234567890123}'),
    (b'{"a":1,"a":2}', '{"a": 1, "a": 2}'),
    (b"[]", "[]"),
    (b"null", "null"),
    (rb'"\u05e9\u05dc\u05d5\u05dd \ud83d\ude00"', '"\u05e9\u05dc\u05d5\u05dd \U0001f600"'),
    ('"\u05e9 \U0001f600"'.encode(), '"\u05e9 \U0001f600"'),
    (rb'"\\u05e9 \n \u003c \u202e"', r'"\\u05e9 \n < \u202e"'),
    (rb'"\ud83d"', '"\ufffd"'),
]


@pytest.mark.parametrize(
    ("raw", "text"),
    AS_PUBLISHED,
    ids=[
        "numbers and order of keys",
        "duplicate keys",
        "empty list",
        "null",
        "letters in escapes",
        "letters",
        "escapes of signs and of what cannot be seen",
        "half a pair",
    ],
)
def test_short_value_stands_on_one_line_as_it_was_published(raw: bytes, text: str) -> None:
    shown = json_text(check(raw))
    assert shown.text == text
    assert not shown.is_folded
    assert shown.num_bytes == len(raw)


def test_longer_value_is_indented() -> None:
    value = {"a": "x" * ONE_LINE}
    shown = json_text(check(json.dumps(value).encode()))
    assert shown.text == json.dumps(value, indent=2)
    assert not shown.is_folded


def test_value_of_many_lines_is_folded_behind_its_beginning() -> None:
    value = list(range(100, 100 + 10 * UNFOLDED_LINES))
    shown = json_text(check(json.dumps(value).encode()))
    assert shown.is_folded
    assert shown.text == json.dumps(value, indent=2)
    assert shown.preview == json.dumps(value)[:PREVIEW] + "\N{HORIZONTAL ELLIPSIS}"
    assert not shown.is_cut


@pytest.mark.parametrize(
    "raw",
    [b'"' + b"x" * LONGEST + b'"', b"[" * 900 + b"]" * 900],
    ids=["long", "nested"],
)
def test_text_is_cut_however_long_it_would_be(raw: bytes) -> None:
    shown = json_text(check(raw))
    assert shown.is_cut
    assert shown.is_folded
    assert len(shown.text) == LONGEST


@pytest.mark.parametrize("name", ["ONE_LINE", "UNFOLDED", "UNFOLDED_LINES", "PREVIEW", "LONGEST"])
def test_live_tail_folds_and_cuts_where_the_history_does(name: str) -> None:
    script = Path(module.__file__).parent / "static/admin_panel/tail_entry.js"
    [number] = re.findall(rf"^const {name} = ([\d_]+);", script.read_text(), re.MULTILINE)
    assert int(number) == getattr(module, name)
