"""The JSON stream reader: separators, keys, malformed values."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Raw, Struct

from realtime.protocol.json_stream import Malformed, ObjectDecoder, decode_stream, method_number
from tests.unit.parts import json_values, quickly, white_space


class Position(Struct, forbid_unknown_fields=True):
    offset: int | None = None
    epoch: str | None = None


class Item(Struct, forbid_unknown_fields=True):
    id: Annotated[int, Meta(ge=0, le=10)] | None = None
    method: int | str = 0
    params: Raw = Raw(b"")
    subs: dict[str, Position | None] | None = None


decode_item = ObjectDecoder(Item, subs=Position)


def ids(frame: bytes) -> list[int | None]:
    return [item.id for item in decode_stream(frame, decode_item)]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b'{"id":1}\n{"id":2}', id="line break"),
        pytest.param(b'{"id":1}\n{"id":2}\n', id="line break at the end too"),
        pytest.param(b'\n\n{"id":1}\n\n\n{"id":2}\n\n', id="blank lines"),
        pytest.param(b'{"id":1}{"id":2}', id="nothing"),
        pytest.param(b'{"id":1} {"id":2}', id="space"),
        pytest.param(b'{"id":1}\t\r\n{"id":2}', id="tab and CR LF"),
        pytest.param(b'{"id":1}\r{"id":2}', id="CR"),
        pytest.param(b'{"id":1}{"id":2}\n', id="nothing, then a line break"),
        pytest.param(b'{\n"id"\n:\n1\n}\n{"id":2}', id="line breaks inside a value"),
        pytest.param(b'{"id":1}\n{\n"id":2}', id="line breaks inside the last value"),
    ],
)
def test_two_values_are_read_whatever_separates_them(frame: bytes) -> None:
    assert ids(frame) == [1, 2]


@pytest.mark.parametrize("frame", [b"", b" ", b"\n", b"\r\n \t\n"])
def test_white_space_alone_holds_no_value(frame: bytes) -> None:
    assert ids(frame) == []


def test_brackets_and_line_breaks_inside_strings_do_not_end_a_value() -> None:
    frame = b'{"id":1,"params":"}\\n{"}{"id":2}'
    assert ids(frame) == [1, 2]


def test_number_of_5000_digits_is_passed_over_also_where_values_share_a_line() -> None:
    frame = b'{"id":1,"params":%b}{"id":2}' % (b"7" * 5000)
    assert ids(frame) == [1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"ID":7}', 7, id="upper case"),
        pytest.param(b'{"Id":7}', 7, id="mixed case"),
        pytest.param(b'{"id":7,"more":{"id":8}}', 7, id="unknown key"),
        pytest.param(b'{"more":null,"ID":7}', 7, id="unknown key and upper case"),
        pytest.param(b'{"id":null}', None, id="null"),
        pytest.param(b"{}", None, id="absent"),
    ],
)
def test_keys_match_in_any_case_and_unknown_ones_are_ignored(
    text: bytes, expected: int | None
) -> None:
    assert decode_item(text).id == expected


def test_keys_of_structs_inside_a_map_are_folded_and_the_names_are_not() -> None:
    text = b'{"SUBS":{"A":{"OFFSET":4,"more":1,"Epoch":"x"},"b":null}}'
    assert decode_item(text).subs == {"A": Position(4, "x"), "b": None}


def test_null_map_is_as_absent() -> None:
    assert decode_item(b'{"subs":null,"more":1}').subs is None


def test_raw_field_keeps_its_spelling_when_other_keys_are_folded() -> None:
    item = decode_item(b'{"ID":1,"params":{ "B" : 1.0, "b":2 }}')
    assert bytes(item.params) == b'{ "B" : 1.0, "b":2 }'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"id":"5"}', id="string for integer"),
        pytest.param(b'{"id":-5}', id="negative"),
        pytest.param(b'{"id":5.5}', id="fraction"),
        pytest.param(b'{"id":11}', id="out of range"),
        pytest.param(b'{"id":true}', id="boolean for integer"),
        pytest.param(b'{"ID":"5"}', id="wrong type under a folded key"),
        pytest.param(b'{"method":null}', id="null where there is no null"),
        pytest.param(b'{"method":7.0}', id="float method"),
        pytest.param(b'{"subs":[]}', id="array for object"),
        pytest.param(b'{"subs":{"a":5}}', id="number for object in a map"),
        pytest.param(b'{"subs":{"a":{"offset":"4","x":1}}}', id="wrong type in a map"),
        pytest.param(b"[]", id="array"),
        pytest.param(b"5", id="number"),
        pytest.param(b'"hello"', id="string"),
        pytest.param(b"null", id="null"),
        pytest.param(b"hello", id="bare word"),
        pytest.param(b'{"id":5', id="unclosed"),
        pytest.param(b'{"id":5}}', id="one bracket too many"),
        pytest.param(b'{"more":NaN}', id="not a number"),
        pytest.param(b'{"\xff":1}', id="no UTF-8"),
    ],
)
def test_anything_but_the_expected_object_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        list(decode_stream(text, decode_item))


@pytest.mark.parametrize(
    "separator", [b"\n", b"", b" ", b"\n\n"], ids=["line", "nothing", "space", "lines"]
)
@pytest.mark.parametrize("broken", [b"hello", b'{"\xff":1}'], ids=["bare word", "no UTF-8"])
def test_values_before_a_malformed_one_are_given_first(separator: bytes, broken: bytes) -> None:
    stream = decode_stream(separator.join([b'{"id":1}', b'{"id":2}', broken]), decode_item)
    assert next(stream).id == 1
    assert next(stream).id == 2
    with pytest.raises(Malformed):
        next(stream)


def test_nothing_after_a_malformed_value_is_read() -> None:
    stream = decode_stream(b'5\n{"id":1}', decode_item)
    with pytest.raises(Malformed):
        next(stream)
    assert list(stream) == []


def test_nesting_too_deep_is_malformed() -> None:
    frame = b'{"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(Malformed):
        list(decode_stream(frame + frame, decode_item))


NAMES = {"connect": 0, "ping": 7, "sub_refresh": 11}


@pytest.mark.parametrize(
    ("method", "number"),
    [("ping", 7), ("PiNg", 7), ("SUB_REFRESH", 11), (7, 7), (77, 77), (-1, -1)],
)
def test_method_is_found_by_name_in_any_case_and_numbers_pass(
    method: int | str, number: int
) -> None:
    assert method_number(method, NAMES) == number


@pytest.mark.parametrize("method", ["nope", "", "7", " ping", "ping "])
def test_unknown_method_name_is_malformed(method: str) -> None:
    with pytest.raises(Malformed):
        method_number(method, NAMES)


items = st.fixed_dictionaries(
    {"id": st.integers(0, 10), "method": st.integers(0, 11)},
    optional={"params": json_values, "unknown": json_values},
)
indents = st.sampled_from([None, 0, 2])


@quickly
@given(st.lists(st.tuples(items, indents, st.booleans(), white_space), max_size=5), white_space)
def test_any_list_of_objects_is_read_back_whatever_separates_them(
    spelt: list[tuple[dict[str, object], int | None, bool, bytes]], before: bytes
) -> None:
    frame = before
    for item, indent, upper, separator in spelt:
        named = {key.upper() if upper else key: value for key, value in item.items()}
        frame += json.dumps(named, indent=indent).encode() + separator

    read = list(decode_stream(frame, decode_item))

    assert [(item.id, item.method) for item in read] == [
        (item["id"], item["method"]) for item, *_ in spelt
    ]
    assert [json.loads(bytes(item.params) or b"null") for item in read] == [
        item.get("params") for item, *_ in spelt
    ]


fragments = st.sampled_from(
    [b'{"id":1}', b"{", b"}", b'"', b"\\", b"null", b"[", b"1", b",", b":", b"\n", b" ", b"\xff"]
)


@quickly
@given(st.binary(max_size=30) | st.lists(fragments, max_size=12).map(b"".join))
def test_arbitrary_bytes_raise_nothing_but_malformed(frame: bytes) -> None:
    try:
        read = list(decode_stream(frame, decode_item))
    except Malformed:
        return
    assert all(isinstance(item, Item) for item in read)
