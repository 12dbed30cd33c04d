"""Commands of the second generation in Protobuf, as clients send them."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from msgspec import Raw

from realtime.errors import DisconnectBadRequest
from realtime.protocol.messages import (
    ABSENT,
    ChannelRequest,
    Command,
    ConnectRequest,
    EmptyRequest,
    FilterNode,
    HistoryRequest,
    Method,
    PublishRequest,
    RefreshRequest,
    Request,
    RPCRequest,
    SendRequest,
    StreamPosition,
    SubRefreshRequest,
    SubscribeRequest,
)
from realtime.protocol.protobuf_frames import frame_message
from realtime.protocol.v2 import client_pb2 as pb
from realtime.protocol.v2.commands import METHODS
from tests.unit.protocol.v2.parts import PROTOBUF, RAW

PONG = Command(0, Method.PONG, None)
SERVED = {number: method for number, method in METHODS.items() if method is not Method.PING}


def decode(frame: bytes) -> list[Command]:
    return list(PROTOBUF.decode(frame))


def test_commands_of_a_frame_come_in_order() -> None:
    frame = bytes.fromhex("06 0801 2202 0a00  00  04 0802 6a00  02 6200")

    assert decode(frame) == [
        Command(1, Method.CONNECT, b"\x0a\x00"),
        PONG,
        Command(2, Method.RPC, b""),
        Command(0, Method.SEND, b""),
    ]


@pytest.mark.parametrize("number", SERVED)
def test_field_names_the_method(number: int) -> None:
    frame = b"\x04\x08\x07" + bytes((number << 3 | 2, 0))
    assert decode(frame) == [Command(7, SERVED[number], b"")]


@pytest.mark.parametrize("number", SERVED)
def test_first_request_in_the_order_of_the_schema_wins(number: int) -> None:
    fields = [bytes((later << 3 | 2, 0)) for later in SERVED if later >= number]
    frame = frame_message(b"".join(reversed(fields)) + b"\x08\x01")
    assert decode(frame) == [Command(1, SERVED[number], b"")]


@pytest.mark.parametrize(
    "unknown",
    ["7801", "8101 0102030405060708", "8201 03 010203", "8501 01020304", "2001", "2500000000"],
    ids=["varint", "64-bit", "length", "32-bit", "request as varint", "request as 32-bit"],
)
def test_unknown_fields_of_every_wire_type_are_skipped(unknown: str) -> None:
    fields = bytes.fromhex(unknown)
    for message in (fields + b"\x08\x05\x6a\x00", b"\x08\x05\x6a\x00" + fields):
        assert decode(frame_message(message)) == [Command(5, Method.RPC, b"")]


@pytest.mark.parametrize("message", ["", "0800", "6a00", "0800 2200", "7801"])
def test_command_without_id_and_send_is_a_pong(message: str) -> None:
    assert decode(frame_message(bytes.fromhex(message))) == [PONG]


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "02 0805",
        "04 0805 5a00",
        "04 3a00 6200",
        "06 0805 1007 1a00",
        "04 0805 6a",
        "04 0805 6a01",
        "02 08ff",
        "80",
        "ffffffffffffffffffff01",
        "03 0805 00",
        "05 0805 fa01 05",
    ],
    ids=[
        "empty frame",
        "no request",
        "ping",
        "no ID with send and another request",
        "first generation",
        "frame breaks off",
        "request breaks off",
        "varint breaks off",
        "length breaks off",
        "length too long",
        "field zero",
        "unknown field breaks off",
    ],
)
def test_malformed_frame_is_a_bad_request(frame: str) -> None:
    with pytest.raises(DisconnectBadRequest):
        decode(bytes.fromhex(frame))


def test_commands_before_a_broken_one_are_given_first() -> None:
    commands = PROTOBUF.decode(bytes.fromhex("04 0801 6a00 05"))
    assert next(commands).id == 1
    with pytest.raises(DisconnectBadRequest):
        next(commands)


REQUESTS: list[tuple[Message, Request]] = [
    (
        pb.ConnectRequest(
            token="t",
            data=RAW,
            name="js",
            version="5",
            headers={"X": "1"},
            subs={"a": pb.SubscribeRequest(recover=True, offset=3, epoch="E")},
        ),
        ConnectRequest(
            "t",
            Raw(RAW),
            {"a": SubscribeRequest("", "", StreamPosition(3, "E"))},
            "js",
            "5",
            {"X": "1"},
        ),
    ),
    (
        pb.SubscribeRequest(
            channel="a",
            token="t",
            recover=True,
            epoch="E",
            offset=2**64 - 1,
            data=RAW,
            positioned=True,
            recoverable=True,
            join_leave=True,
            delta="fossil",
            tf=pb.FilterNode(
                op="and", nodes=[pb.FilterNode(key="k", cmp="in", val="v", vals=["a", "b"])]
            ),
            flag=3,
            type=1,
            phase=2,
            cursor="c",
            limit=5,
        ),
        SubscribeRequest(
            "a",
            "t",
            StreamPosition(2**64 - 1, "E"),
            Raw(RAW),
            True,
            True,
            True,
            FilterNode("and", nodes=(FilterNode("", "k", "in", "v", ("a", "b")),)),
            3,
            1,
            StreamPosition(2**64 - 1, "E"),
            2,
            "c",
            5,
        ),
    ),
    (pb.SubscribeRequest(offset=3, epoch="E"), SubscribeRequest("", "")),
    (pb.ChannelRequest(channel="a"), ChannelRequest("a")),
    (pb.PublishRequest(channel="a", data=RAW), PublishRequest("a", Raw(RAW))),
    (pb.PublishRequest(channel="a"), PublishRequest("a", ABSENT)),
    (
        pb.PublishRequest(channel="a", type=1, key="k", removed=True),
        PublishRequest("a", ABSENT, 1, "k", True),
    ),
    (pb.HistoryRequest(channel="a", limit=-1), HistoryRequest("a", -1)),
    (
        pb.HistoryRequest(since=pb.StreamPosition(offset=2, epoch="E"), reverse=True),
        HistoryRequest("", 0, StreamPosition(2, "E"), True),
    ),
    (pb.HistoryRequest(since=pb.StreamPosition()), HistoryRequest("", 0, StreamPosition(0, ""))),
    (pb.RPCRequest(method="m", data=RAW), RPCRequest("m", Raw(RAW))),
    (pb.SendRequest(data=RAW), SendRequest(Raw(RAW))),
    (pb.RefreshRequest(token="t"), RefreshRequest("t")),
    (pb.SubRefreshRequest(channel="$a", token="t"), SubRefreshRequest("$a", "t")),
]


@pytest.mark.parametrize(("message", "request_"), REQUESTS, ids=lambda part: type(part).__name__)
def test_request_is_decoded(message: Message, request_: Request) -> None:
    command = Command(1, None, message.SerializeToString())
    assert PROTOBUF.params(command, type(request_)) == request_


SHAPES = [shape for shape in Request.__args__ if shape is not EmptyRequest]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", [b"\x0a", b"\x0a\x01", b"\x12\x05ab", b"\x0a\x80"])
def test_request_that_breaks_off_is_a_bad_request(shape: type[Request], text: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        PROTOBUF.params(Command(1, None, text), shape)


def test_text_that_is_not_utf8_is_a_bad_request() -> None:
    with pytest.raises(DisconnectBadRequest):
        PROTOBUF.params(Command(1, None, b"\x0a\x01\xff"), ChannelRequest)


@pytest.mark.parametrize("shape", SHAPES)
def test_empty_request_has_empty_fields(shape: type[Request]) -> None:
    request = PROTOBUF.params(Command(1, None, b""), shape)
    assert not any(getattr(request, name) for name in shape.__struct_fields__ if name != "data")


def test_unknown_delta_is_a_bad_request() -> None:
    text = pb.SubscribeRequest(channel="a", delta="other").SerializeToString()
    with pytest.raises(DisconnectBadRequest):
        PROTOBUF.params(Command(1, None, text), SubscribeRequest)


def test_filter_that_is_nested_too_deeply_is_a_bad_request() -> None:
    node = b""
    for _ in range(5000):
        node = b"\x32" + frame_message(node)
    text = b"\x6a" + frame_message(node)

    with pytest.raises(DisconnectBadRequest):
        PROTOBUF.params(Command(1, None, text), SubscribeRequest)
