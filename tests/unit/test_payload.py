"""Payloads: what is accepted, and how it is spelt in JSON frames."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime import payload
from tests.unit.parts import json_values, quickly


@pytest.mark.parametrize(
    ("raw", "spelt"),
    [
        pytest.param(b"1.0", b"1.0", id="fraction of zero"),
        pytest.param(b"1E5", b"1E5", id="exponent"),
        pytest.param(b"-0", b"-0", id="negative zero"),
        pytest.param(b"12345678901234567890", b"12345678901234567890", id="20 digits"),
        pytest.param(b"7" * 5000, b"7" * 5000, id="5000 digits"),
        pytest.param(b'{"b":1,"a":2}', b'{"b":1,"a":2}', id="key order"),
        pytest.param(b'{"a":1,"a":2}', b'{"a":1,"a":2}', id="duplicate keys"),
        pytest.param(b' {\t"a" :\r\n[ 1 , 2 ] } \n', b'{"a":[1,2]}', id="white space"),
        pytest.param(b'"a b\\n"', b'"a b\\n"', id="white space in strings"),
        pytest.param(b'"\\u003c"', b'"\\u003c"', id="escaped already"),
        pytest.param(b'"<b>"', b'"\\u003cb\\u003e"', id="angle brackets"),
        pytest.param(b'{"a&b":"&"}', b'{"a\\u0026b":"\\u0026"}', id="ampersand also in keys"),
        pytest.param('"\u2028\u2029"'.encode(), b'"\\u2028\\u2029"', id="line separators"),
        pytest.param('"\u2027é日😀"'.encode(), '"\u2027é日😀"'.encode(), id="other characters"),
        pytest.param(b"null", b"null", id="null"),
        pytest.param(b'""', b'""', id="empty string"),
    ],
)
def test_json_spelling_is_compact_and_escaped_and_otherwise_as_it_came(
    raw: bytes, spelt: bytes
) -> None:
    assert payload.check(raw).json == spelt


def test_raw_spelling_is_what_came() -> None:
    raw = b' { "a" : "<" } \n'
    assert payload.check(raw).raw == raw


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b" \n", id="white space only"),
        pytest.param(b"hello", id="bare word"),
        pytest.param(b"1 2", id="two values"),
        pytest.param(b"{'a':1}", id="single quotes"),
        pytest.param(b'{"a":1,}', id="trailing comma"),
        pytest.param(b"[1", id="unclosed"),
        pytest.param(b"01", id="leading zero"),
        pytest.param(b"NaN", id="not a number"),
        pytest.param(b'"\n"', id="raw line break in a string"),
        pytest.param(b'"\\x"', id="unknown escape"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', id="surrogate in UTF-8"),
        pytest.param(b"\xef\xbb\xbf1", id="byte order mark"),
        pytest.param(b'{"a":"\xc3"}', id="truncated UTF-8"),
    ],
)
def test_what_is_not_one_json_value_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON value"):
        payload.check(raw)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_nesting_too_deep_to_be_safe_is_refused(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    with pytest.raises(ValueError, match="not a JSON value"):
        payload.check(opening * 100_000 + b"1" + closing * 100_000)


def test_reasonable_nesting_is_accepted() -> None:
    raw = b"[" * 100 + b"]" * 100
    assert payload.check(raw).json == raw


def test_text_without_dangerous_characters_is_not_copied() -> None:
    text = '{"a":"é"}'.encode()
    assert payload.escape(text) is text


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        ({"text": "<hi>"}, b'{"text":"\\u003chi\\u003e"}'),
        ([1, 2.5, None, True], b"[1,2.5,null,true]"),
        ("é", '"é"'.encode()),
    ],
    ids=["dict", "list", "string"],
)
def test_python_object_is_encoded_once(value: object, spelt: bytes) -> None:
    assert payload.from_object(value).json == spelt


def test_object_without_json_form_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        payload.from_object({"a": object()})


def test_object_that_contains_itself_is_a_value_error() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="not a JSON value"):
        payload.from_object(endless)


@quickly
@given(json_values)
def test_any_json_value_keeps_its_meaning(value: Any) -> None:
    assert json.loads(payload.from_object(value).json) == value
    assert json.loads(payload.check(json.dumps(value).encode()).json) == value
    assert json.loads(payload.check(json.dumps(value, ensure_ascii=False).encode()).json) == value


@quickly
@given(json_values, st.sampled_from([None, 0, 1, 4, "\t"]), st.booleans())
def test_json_spelling_holds_no_line_break_and_nothing_dangerous(
    value: Any, indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    spelt = payload.check(text).json
    assert not any(danger in spelt for danger in (b"\n", b"\r", b"<", b">", b"&"))
    assert not any(danger.encode() in spelt for danger in ("\u2028", "\u2029"))


@quickly
@given(json_values)
def test_check_accepts_its_own_spelling_unchanged(value: Any) -> None:
    spelt = payload.from_object(value).json
    again = payload.check(spelt)
    assert again.json == again.raw == spelt


def _is_json(text: bytes) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text.decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


@quickly
@given(st.text('{}[],:"\\ \n0123456789.-+eEtrufalsn<x', max_size=12).map(str.encode))
def test_check_accepts_exactly_what_another_json_reader_accepts(text: bytes) -> None:
    try:
        payload.check(text)
    except ValueError:
        assert not _is_json(text)
    else:
        assert _is_json(text)


@quickly
@given(st.binary(max_size=40))
def test_arbitrary_bytes_raise_nothing_but_value_error(raw: bytes) -> None:
    try:
        checked = payload.check(raw)
    except ValueError:
        return
    assert msgspec.json.decode(checked.json) == msgspec.json.decode(raw)


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\uDE00 cut"', "\ufffd cut"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'{"a":"\ud83d\ude00\ud83d"}', {"a": "\U0001f600\ufffd"}),
    ],
    ids=["high half", "low half", "half before a pair", "a backslash and letters", "pair and half"],
)
def test_half_of_a_surrogate_pair_is_read_as_the_replacement_character(
    raw: bytes, meant: object
) -> None:
    checked = payload.check(raw)
    assert checked.raw == raw
    assert json.loads(checked.json) == meant


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (b'{"a":[1,null,"b"]}', {"a": [1, None, "b"]}),
        (rb'"\ud83d"', "\ufffd"),
        (b"[1e999,-1e999]", [math.inf, -math.inf]),
        (b"1" + 5000 * b"0", math.inf),
        (b"[1e999,1" + 30 * b"0" + b"]", [math.inf, 10**30]),
    ],
    ids=["plain", "half a pair", "large floats", "more digits than Python reads", "both"],
)
def test_every_payload_has_a_value_in_python(raw: bytes, meant: object) -> None:
    assert payload.value(payload.check(raw).json) == meant
