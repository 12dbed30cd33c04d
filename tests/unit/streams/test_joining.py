"""Publications that are joined while they are read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.payload import Payload, check
from realtime.protocol.messages import ClientInfo, Publication
from realtime.streams.joining import MAX_BYTES, join, join_chunks


def published(*values: Any, **fields: Any) -> list[Publication]:
    return [
        Publication(check(json.dumps(value).encode()), offset=number, time=number * 10, **fields)
        for number, value in enumerate(values, 1)
    ]


def data(publications: Any) -> list[Any]:
    return [json.loads(each.data.json) for each in publications]


JOINED: dict[str, dict[str, Any]] = {
    "text-delta": {"id": "1", "delta": "a"},
    "reasoning-delta": {"id": "1", "delta": "a"},
    "tool-input-delta": {"toolCallId": "1", "inputTextDelta": "a"},
    "TEXT_MESSAGE_CONTENT": {"messageId": "1", "delta": "a"},
    "REASONING_MESSAGE_CONTENT": {"messageId": "1", "delta": "a"},
    "TOOL_CALL_ARGS": {"toolCallId": "1", "delta": "a"},
    "response.output_text.delta": {
        "item_id": "1",
        "output_index": 0,
        "content_index": 0,
        "delta": "a",
    },
    "response.refusal.delta": {"item_id": "1", "output_index": 0, "content_index": 0, "delta": "a"},
    "response.reasoning_text.delta": {
        "item_id": "1",
        "output_index": 0,
        "content_index": 0,
        "delta": "a",
    },
    "response.reasoning_summary_text.delta": {
        "item_id": "1",
        "output_index": 0,
        "summary_index": 0,
        "delta": "a",
    },
    "response.function_call_arguments.delta": {"item_id": "1", "output_index": 0, "delta": "a"},
}
"""Type → a chunk of it: its text and what has to be equal."""


@pytest.mark.parametrize("kind", JOINED)
def test_equal_chunks_become_one_and_others_do_not(kind: str) -> None:
    chunk = {"type": kind, **JOINED[kind]}
    field = "inputTextDelta" if "inputTextDelta" in chunk else "delta"

    joined = join(published([chunk], [chunk | {field: "b"}]))

    assert data(joined) == [[chunk | {field: "ab"}]]
    for name in set(chunk) - {field}:
        other = chunk | {name: "other"}
        assert data(join(published([chunk], [other]))) == [[chunk, other]]


@pytest.mark.parametrize(
    ("extra", "is_joined"),
    [
        ({"providerMetadata": {"x": 1}}, False),
        ({"metadata": {"x": 1}}, False),
        ({"logprobs": [{"token": "a"}]}, False),
        ({"logprobs": []}, True),
        ({"providerMetadata": None}, True),
        ({"delta": 5}, False),
        ({"delta": None}, False),
    ],
)
def test_chunk_with_more_than_text_stays_alone(extra: dict[str, Any], is_joined: bool) -> None:
    chunk = {"type": "text-delta", "id": "1", "delta": "a"}
    assert len(join_chunks([chunk, chunk | extra])) == (1 if is_joined else 2)


def test_last_sequence_number_counts() -> None:
    chunk = {"type": "response.refusal.delta", "delta": "a", "sequence_number": 1}
    assert join_chunks([chunk, chunk | {"sequence_number": 2}])[0]["sequence_number"] == 2


def test_joined_publication_has_place_and_time_of_the_last() -> None:
    [joined] = join(published("a", "b", "c"))
    assert (joined.offset, joined.time, json.loads(joined.data.json)) == (3, 30, "abc")


def test_what_is_neither_array_nor_string_separates() -> None:
    values = ["a", "b", {"x": 1}, "c", ["d"], ["e"], 5, None]
    assert data(join(published(*values))) == ["ab", {"x": 1}, "c", ["d", "e"], 5, None]


def test_publications_with_tags_or_of_clients_stay_alone() -> None:
    for fields in ({"tags": {"end": "complete"}}, {"info": ClientInfo(user="7", client="c")}):
        publications = published("a", "b", **fields)
        assert join(publications) == tuple(publications)


def test_publication_that_is_not_joined_stays_byte_by_byte() -> None:
    chunk = b'{"type":"text-delta","id":"1","delta":"\\u0041","n":1.0e400}'
    text = b"[%b,%b]" % (chunk, chunk)
    [publication] = join([Publication(Payload(text, text), offset=1)])
    assert publication.data.json == text


def test_numbers_keep_their_spelling() -> None:
    first = b'[{"type":"text-delta","id":1.50,"big":123456789012345678901234567890,"delta":"a"}]'
    second = b'[{"type":"text-delta","id":1.50,"delta":"b"}]'
    [joined] = join([Publication(Payload(each, each), offset=1) for each in (first, second)])
    assert joined.data.json == first.replace(b'"a"', b'"ab"')


def test_joined_data_are_bounded() -> None:
    words = ["x" * 1000] * 200
    joined = join(published(*words))
    assert len(joined) == 4
    assert max(len(each.data.json) for each in joined) <= MAX_BYTES
    assert "".join(data(joined)) == "".join(words)


_DELTAS = st.builds(
    lambda kind, block, text: {"type": kind, "id": block, "delta": text},
    st.sampled_from(["text-delta", "reasoning-delta", "text-start"]),
    st.sampled_from(["1", "2"]),
    st.text(max_size=5),
)
_DATA = st.lists(_DELTAS | st.integers() | st.none(), max_size=4) | st.text(max_size=5)


def _texts(values: list[Any]) -> list[Any]:
    """What a reader gets to see: the same however it was joined."""
    seen: list[Any] = []
    for value in values:
        for chunk in value if isinstance(value, list) else [value]:
            seen += join_chunks([chunk]) if not isinstance(chunk, str) else [chunk]
    return seen


@given(st.lists(_DATA, max_size=12), st.integers(0, 12))
def test_text_is_the_same_however_the_pages_are_cut(values: list[Any], cut: int) -> None:
    publications = published(*values)
    whole = join(publications)
    pages = join([*join(publications[:cut]), *join(publications[cut:])])
    assert data(pages) == data(whole)
    assert data(join(whole)) == data(whole)
    chunks = [chunk for value in values if isinstance(value, list) for chunk in value]
    found = [chunk for value in data(whole) if isinstance(value, list) for chunk in value]
    assert join_chunks(found) == join_chunks(chunks)
    assert [each.offset for each in whole] == sorted({each.offset for each in whole})
