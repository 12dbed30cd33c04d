"""Commands in Protobuf: frames, params, and what is not a command."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from realtime.errors import DisconnectBadRequest
from realtime.protocol.messages import (
    ABSENT,
    ChannelRequest,
    Command,
    ConnectRequest,
    EmptyRequest,
    HistoryRequest,
    Method,
    PublishRequest,
    RefreshRequest,
    RPCRequest,
    StreamPosition,
    SubRefreshRequest,
    SubscribeRequest,
)
from realtime.protocol.protobuf_frames import frame_message, split_frame
from realtime.protocol.v1 import client_pb2
from realtime.protocol.v1.numbers import METHODS
from realtime.protocol.v1.protobuf import ProtobufCodec
from tests.unit.parts import quickly

OFFSET = ProtobufCodec(use_offset=True)
RAW = b'{ "a" : "<" }'


# framing


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 2097152])
def test_length_in_front_is_the_varint_of_the_protobuf_library(size: int) -> None:
    message = b"x" * size
    assert frame_message(message) == _VarintBytes(size) + message


@quickly
@given(st.lists(st.binary(max_size=300), max_size=6))
def test_messages_survive_the_way_through_a_frame(messages: list[bytes]) -> None:
    frame = b"".join(map(frame_message, messages))
    assert list(split_frame(frame)) == messages


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\x80", id="length breaks off"),
        pytest.param(b"\x05abc", id="message breaks off"),
        pytest.param(b"\xff" * 10 + b"\x01", id="length of eleven bytes"),
        pytest.param(b"\xff" * 9 + b"\x01", id="length of 64 bits"),
    ],
)
def test_broken_framing_is_a_bad_request(frame: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        list(OFFSET.decode(frame))


def framed(**fields: Any) -> bytes:
    return frame_message(client_pb2.Command(**fields).SerializeToString())


def test_commands_of_a_frame_come_in_order() -> None:
    frame = framed(id=1, params=b"\n\x01t") + framed(id=2, method=7)
    assert list(OFFSET.decode(frame)) == [
        Command(1, Method.CONNECT, b"\n\x01t"),
        Command(2, Method.PING, None),
    ]


def test_commands_before_a_broken_one_are_given_first() -> None:
    commands = OFFSET.decode(framed(id=1, method=7) + b"\x05abc")
    assert next(commands).id == 1
    with pytest.raises(DisconnectBadRequest):
        next(commands)


def test_number_of_no_method_is_an_unknown_method() -> None:
    # field 2, varint 77: the enumeration is open
    assert list(OFFSET.decode(b"\x04\x08\x05\x10\x4d")) == [Command(5, None, None)]


@pytest.mark.parametrize(
    "frame",
    [b"", b"\x02\xff\xff", b"\x02\x1a\x7f"],
    ids=["empty frame", "no message", "field breaks off"],
)
def test_malformed_command_is_a_bad_request(frame: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        list(OFFSET.decode(frame))


@pytest.mark.parametrize("number", [*METHODS, 77])
def test_only_send_needs_no_id(number: int) -> None:
    frame = frame_message(b"\x10%c" % number)

    if METHODS.get(number) is Method.SEND:
        assert list(OFFSET.decode(frame)) == [Command(0, Method.SEND, None)]
    else:
        with pytest.raises(DisconnectBadRequest):
            list(OFFSET.decode(frame))


def test_message_of_no_bytes_is_a_command_without_id() -> None:
    with pytest.raises(DisconnectBadRequest):
        list(OFFSET.decode(b"\x00"))


# params


@pytest.mark.parametrize(
    ("message", "request_"),
    [
        (client_pb2.UnsubscribeRequest(channel="a"), ChannelRequest("a")),
        (client_pb2.HistoryRequest(channel="a"), HistoryRequest("a", -1)),
        (client_pb2.PublishRequest(channel="a", data=RAW), PublishRequest("a", Raw(RAW))),
        (client_pb2.PublishRequest(channel="a"), PublishRequest("a", ABSENT)),
        (client_pb2.RefreshRequest(token="t"), RefreshRequest("t")),
        (client_pb2.SubRefreshRequest(channel="$a", token="t"), SubRefreshRequest("$a", "t")),
        (client_pb2.RPCRequest(method="m", data=RAW), RPCRequest("m", Raw(RAW))),
        (client_pb2.SendRequest(data=RAW), EmptyRequest()),
        (
            client_pb2.SubscribeRequest(
                channel="a", recover=True, seq=1, gen=2, epoch="e", offset=3
            ),
            SubscribeRequest("a", "", StreamPosition(2**33 + 1, "e")),
        ),
        (
            client_pb2.ConnectRequest(
                token="t",
                name="js",
                subs={"a": client_pb2.SubscribeRequest(recover=True, offset=3)},
            ),
            ConnectRequest(
                "t",
                name="js",
                version="",
                subs={"a": SubscribeRequest("", "", StreamPosition(3, ""))},
            ),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_params_become_the_request_of_the_method(message: Message, request_: object) -> None:
    command = Command(1, None, message.SerializeToString())
    assert OFFSET.params(command, type(request_)) == request_  # type: ignore[type-var]


SHAPES: list[type[Any]] = [
    HistoryRequest,
    ConnectRequest,
    SubscribeRequest,
    ChannelRequest,
    PublishRequest,
    RPCRequest,
    RefreshRequest,
    SubRefreshRequest,
    EmptyRequest,
]


@pytest.mark.parametrize("shape", SHAPES)
def test_absent_params_are_the_empty_message(shape: type[Any]) -> None:
    request: Any = OFFSET.params(Command(1, None, None), shape)

    assert request == OFFSET.params(Command(1, None, b""), shape)
    given = {name: getattr(request, name) for name in shape.__struct_fields__ if name != "data"}
    assert {name: value for name, value in given.items() if value} == (
        {"limit": -1} if shape is HistoryRequest else {}
    )


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_params_of_the_wrong_shape_are_a_bad_request(shape: type) -> None:
    # field 1 is a string everywhere; here it ends after its tag
    with pytest.raises(DisconnectBadRequest):
        OFFSET.params(Command(1, None, b"\x0a"), shape)
