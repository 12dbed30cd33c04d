"""Negotiation: the codec of a connection, the subprotocol to return, and the generation."""

from __future__ import annotations

import pytest

from realtime.protocol.negotiation import Codecs, generation_of
from realtime.protocol.v2.commands import METHODS

CODECS = Codecs(use_offset=True)


@pytest.mark.parametrize(
    ("query", "offered", "format_name", "subprotocol"),
    [
        (b"", [], "json", None),
        (b"format=protobuf", [], "protobuf", None),
        (b"protocol=protobuf", [], "protobuf", None),
        (b"cf_protocol=protobuf", [], "protobuf", None),
        (b"format=json&protocol=protobuf", [], "protobuf", None),
        (b"encoding=binary&format=protobuf", [], "protobuf", None),
        *(
            (query, [], "json", None)
            for query in (b"encoding=binary", b"format=", b"format=PROTOBUF")
        ),
        *((query, [], "json", None) for query in (b"format=protobuf2", b"Format=protobuf")),
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
    codec, answer, is_final = CODECS.negotiate(query, offered)
    assert (codec.format, answer, is_final) == (format_name, subprotocol, False)
    assert codec is (CODECS.protobuf if codec.binary else CODECS.json)


@pytest.mark.parametrize(
    ("query", "generation", "format_name"),
    [
        (b"cf_protocol_version=v1", 1, "json"),
        (b"cf_protocol_version=v2", 2, "json"),
        (b"cf_protocol_version=v1&format=protobuf", 1, "protobuf"),
        (b"format=protobuf&cf_protocol_version=v2", 2, "protobuf"),
    ],
)
def test_query_may_ask_for_a_generation(query: bytes, generation: int, format_name: str) -> None:
    codec, _, is_final = CODECS.negotiate(query, [])
    assert (codec.generation, codec.format, is_final) == (generation, format_name, True)


@pytest.mark.parametrize("version", [b"", b"v3", b"2", b"V2", b"v2v2"])
def test_version_that_does_not_exist_is_no_wish(version: bytes) -> None:
    codec, _, is_final = CODECS.negotiate(b"cf_protocol_version=" + version, [])
    assert (codec.generation, is_final) == (1, False)


# the generation

FIRST_IN_JSON = [
    b'{"params":{"token":"T","name":"js"},"id":1}',
    b'{"params":{"token":"T"},"id":57}',
    b'{"id":1}',
    b'{"id":1}\n{"connect":{},"id":2}',
    b'{"id":1}{"connect":{},"id":2}',
    b'{"id":1,"method":"connect"}',
    b'{"id":1,"method":1,"params":{"connect":{}}}',
    b'{"params":{"name":"\\ud83d"},"id":1}',
]
SECOND_IN_JSON = [
    b'{"connect":{"token":"T","name":"js"},"id":1}',
    b'{"connect":{},"id":1}',
    b'{"id": 1, "connect": {"token": "T", "name": "python"}}',
    b'{"connect":{},"id":57}\n{"subscribe":{"channel":"a"},"id":58}',
    b'{"connect":{},"id":1}{"id":2}',
    b'{\n  "id": 1,\n  "connect": {}\n}\n',
    b'\n {"CONNECT":{},"id":1}',
    b'{"id":5,"connect":{},"method":7}',
    b'{"id":1,"subscribe":{"channel":"a"}}',
    b'{"send":null}',
    b'{"params":"\\ud83d","rpc":5}',
    *(b'{"id":1,"%b":{}}' % method.encode() for method in METHODS.values()),
]
UNKNOWN_IN_JSON = [
    b"",
    b" \n",
    b"{}",
    b"null",
    b"5",
    b"[]",
    b"hello",
    b'"connect"',
    b'["connect"]',
    b'{"connect":{}',
    b'{"connect":}',
    b'{"connect":{\xff}}',
    b'hello\n{"connect":{}}',
    b'{}\n{"connect":{},"id":1}',
    b"\xff\xfe",
    b"[" * 60_000,
    b'{"connect":' * 6_000,
]

FIRST_IN_PROTOBUF = [
    "04 0801 1000",
    "07 0801 1000 1a01 78",
    "02 0801",
    "04 0805 104d",
    "02 0801 04 0802 2200",
    "06 0801 8001 7801",
    "0a 0801 1a06 2200 2a00 3200",
]
SECOND_IN_PROTOBUF = [
    "04 0801 2200",
    "06 0801 2202 0a00",
    "04 2200 0801",
    "04 0801 2200 06 0802 2a02 0a00",
    "06 0801 1007 2200",
    "04 0801 2005",
    "0a 0801 c001 01 c201 00 6a00",
    "0d 0801 11 0102030405060708 2200",
    "09 0801 15 01020304 2200",
    "08 1a04 22000801 2200",
    *(f"04 0801 {number << 3 | 2:02x}00" for number in METHODS),
]
UNKNOWN_IN_PROTOBUF = [
    "",
    "00",
    "00 04 0801 2200",
    "04 0801 22",
    "04 0801 2201",
    "05 0801 2200 08",
    "06 0801 2200 1a05",
    "05 0801 2200",
    "80",
    "ff" * 11,
    "03 0801 23",
    "04 0801 0200",
    "06 0801 2200 1101",
    "04 22ff ffff",
    "0d 22" + "ff" * 11 + "01",
]


@pytest.mark.parametrize(
    ("frame", "binary", "generation"),
    [
        *((frame, False, 1) for frame in FIRST_IN_JSON + UNKNOWN_IN_JSON),
        *((frame, False, 2) for frame in SECOND_IN_JSON),
        *((bytes.fromhex(text), True, 1) for text in FIRST_IN_PROTOBUF + UNKNOWN_IN_PROTOBUF),
        *((bytes.fromhex(text), True, 2) for text in SECOND_IN_PROTOBUF),
    ],
    ids=lambda value: repr(value[:50]) if isinstance(value, bytes) else str(value),
)
def test_first_frame_tells_the_generation(frame: bytes, binary: bool, generation: int) -> None:
    started = CODECS.protobuf if binary else CODECS.json
    recognised = CODECS.recognise(started, frame)
    assert generation_of(frame, binary) == generation
    assert (recognised.generation, recognised.binary) == (generation, binary)
    assert recognised is CODECS.of(generation, binary)
