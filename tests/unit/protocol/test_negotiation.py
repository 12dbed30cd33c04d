"""Negotiation: the codec of a connection, and the subprotocol to return."""

from __future__ import annotations

import pytest

from realtime.protocol.negotiation import Codecs

CODECS = Codecs(use_offset=True)


@pytest.mark.parametrize(
    ("query", "offered", "format_name", "subprotocol"),
    [
        (b"", [], "json", None),
        (b"format=protobuf", [], "protobuf", None),
        (b"protocol=protobuf", [], "protobuf", None),
        (b"format=json&protocol=protobuf", [], "protobuf", None),
        (b"format=Protobuf", [], "json", None),
        (b"format=json&format=protobuf", [], "json", None),
        (b"format=%ff\xff", [], "json", None),
        (b"", ["centrifuge-json"], "json", "centrifuge-json"),
        (b"", ["centrifuge-protobuf"], "protobuf", "centrifuge-protobuf"),
        (b"", ["graphql-ws", "centrifuge-protobuf"], "protobuf", "centrifuge-protobuf"),
        (b"", ["centrifuge-json", "centrifuge-protobuf"], "json", "centrifuge-json"),
        (b"", ["graphql-ws"], "json", None),
        (b"format=protobuf", ["centrifuge-json"], "protobuf", "centrifuge-json"),
        (b"format=json", ["centrifuge-protobuf"], "protobuf", "centrifuge-protobuf"),
    ],
)
def test_query_and_subprotocols_choose_the_codec(
    query: bytes, offered: list[str], format_name: str, subprotocol: str | None
) -> None:
    codec, answer = CODECS.negotiate(query, offered)

    assert (codec.format, answer) == (format_name, subprotocol)
    assert codec is (CODECS.protobuf if codec.binary else CODECS.json)
