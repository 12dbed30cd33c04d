"""The JSON format: commands as clients send them."""

from __future__ import annotations

import json

import pytest
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
    RPCRequest,
    StreamPosition,
    SubRefreshRequest,
    SubscribeRequest,
)
from realtime.protocol.v1.json import JSONCodec
from realtime.protocol.v1.numbers import METHOD_NUMBERS, METHODS
from tests.unit.parts import json_values, quickly, white_space

CODEC = JSONCodec(use_offset=True)


def decode(frame: bytes) -> list[Command]:
    return list(CODEC.decode(frame))


def test_commands_of_a_frame_come_in_order() -> None:
    frame = b'{"params":{"token":"t"},"id":1}\n{"id":2,"method":7}{"id":3,"method":"PING"}\n'

    assert decode(frame) == [
        Command(1, Method.CONNECT, b'{"token":"t"}'),
        Command(2, Method.PING, None),
        Command(3, Method.PING, None),
    ]


@pytest.mark.parametrize("method", METHODS.values())
def test_method_is_known_by_number_and_by_name(method: Method) -> None:
    number = METHOD_NUMBERS[method]
    frame = b'{"id":1,"method":%d}{"id":1,"method":"%b"}' % (number, method.encode())
    assert [command.method for command in decode(frame)] == [method, method]


@pytest.mark.parametrize("number", [12, 77, -1, 2**70])
def test_number_of_no_method_is_an_unknown_method(number: int) -> None:
    assert decode(b'{"id":5,"method":%d}' % number) == [Command(5, None, None)]


@pytest.mark.parametrize("number", [*METHODS, 77])
@pytest.mark.parametrize("given_id", ["", '"id":0,'], ids=["no ID", "ID 0"])
def test_only_send_needs_no_id(given_id: str, number: int) -> None:
    frame = f'{{{given_id}"method":{number}}}'.encode()

    if METHODS.get(number) is Method.SEND:
        assert decode(frame) == [Command(0, Method.SEND, None)]
    else:
        with pytest.raises(DisconnectBadRequest):
            decode(frame)


@pytest.mark.parametrize("command_id", [1, 7, 2**32 - 1])
def test_ids_start_anywhere_and_repeat(command_id: int) -> None:
    frame = b'{"id":%d,"method":7}' % command_id * 2
    assert decode(frame) == [Command(command_id, Method.PING, None)] * 2


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"null",
        b"5",
        b"[]",
        b"hello",
        b'{"id":5,"method":"nope"}',
        b'{"id":5,"method":""}',
        b'{"id":5,"method":"7"}',
        b'{"id":5,"method":null}',
        b'{"id":5,"method":true}',
        b'{"id":5,"method":7.0}',
        b'{"id":"5","method":7}',
        b'{"id":-5,"method":7}',
        b'{"id":5.5,"method":7}',
        b'{"id":4294967296,"method":7}',
    ],
    ids=lambda frame: frame.decode() or "empty frame",
)
def test_malformed_command_is_a_bad_request(frame: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        decode(frame)


def test_commands_before_a_broken_one_are_given_first() -> None:
    commands = CODEC.decode(b'{"id":1,"method":7}\nhello')
    assert next(commands).id == 1
    with pytest.raises(DisconnectBadRequest):
        next(commands)


def test_frame_of_white_space_holds_no_command() -> None:
    assert decode(b" \n") == []


def params(text: bytes | None, shape: type) -> object:
    return CODEC.params(Command(1, None, text), shape)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        (b'{"channel":"a"}', ChannelRequest("a")),
        (b'{"Channel":"a","since":{}}', ChannelRequest("a")),
        (b'{"channel":null}', ChannelRequest(None)),
        (b'{"channel":"a","data":null}', PublishRequest("a", Raw(b"null"))),
        (b'{"channel":"a"}', PublishRequest("a", ABSENT)),
        (b'{"token":"t","channel":"$a"}', SubRefreshRequest("$a", "t")),
        (b'{"method":"m","data":{"a": 1}}', RPCRequest("m", Raw(b'{"a": 1}'))),
        (
            b'{"channel":"a","recover":true,"seq":1,"gen":2,"epoch":"e"}',
            SubscribeRequest(channel="a", since=StreamPosition(2**33 + 1, "e")),
        ),
        (b'{"token":"t","offset":5,"epoch":"e"}', SubscribeRequest(token="t")),
        (
            b'{"recover":true,"offset":18446744073709551615}',
            SubscribeRequest(since=StreamPosition(2**64 - 1, "")),
        ),
        (
            b'{"token":"t","name":"js","subs":{"a":{"recover":true,"offset":3},"b":null}}',
            ConnectRequest(
                "t",
                name="js",
                subs={"a": SubscribeRequest(since=StreamPosition(3, "")), "b": None},
            ),
        ),
        (b'{"anything":1}', EmptyRequest()),
        # as centrifuge-js 2.8 writes a part, which Centrifugo 2 ignores, whatever its types are
        (b'{"channel":"a","limit":2,"reverse":true}', HistoryRequest("a", -1)),
        (b'{"channel":"a","limit":"2","since":5}', HistoryRequest("a", -1)),
        # as the client of this package does
        (
            b'{"channel":"a","part":{"limit":2,"reverse":true}}',
            HistoryRequest("a", 2, reverse=True),
        ),
        (
            b'{"channel":"a","part":{"since":{"offset":3,"epoch":"e"},"else":1}}',
            HistoryRequest("a", -1, StreamPosition(3, "e")),
        ),
        (b'{"channel":"a","part":{"since":null}}', HistoryRequest("a", -1)),
        (b'{"channel":"a","part":null}', HistoryRequest("a", -1)),
        (None, HistoryRequest(None, -1)),
        (None, ConnectRequest()),
        (None, ChannelRequest()),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else type(value).__name__,
)
def test_params_become_the_request_of_the_method(text: bytes | None, request_: object) -> None:
    assert params(text, type(request_)) == request_


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (b'"x"', EmptyRequest),
        (b"[]", EmptyRequest),
        (b"5", ChannelRequest),
        (b'{"channel":5}', ChannelRequest),
        (b'{"channel":5}', HistoryRequest),
        (b'{"part":5}', HistoryRequest),
        (b'{"part":{"limit":"2"}}', HistoryRequest),
        (b'{"part":{"since":{"offset":18446744073709551616}}}', HistoryRequest),
        (b'{"token":5}', ConnectRequest),
        (b'{"subs":[]}', ConnectRequest),
        (b'{"subs":{"a":{"offset":18446744073709551616}}}', ConnectRequest),
        (b'{"offset":18446744073709551616}', SubscribeRequest),
        (b'{"offset":-1}', SubscribeRequest),
        (b'{"seq":4294967296}', SubscribeRequest),
        (b'{"recover":1}', SubscribeRequest),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else value.__name__,
)
def test_params_of_the_wrong_shape_are_a_bad_request(text: bytes, shape: type) -> None:
    with pytest.raises(DisconnectBadRequest):
        params(text, shape)


def test_null_params_are_as_absent() -> None:
    assert decode(b'{"id":1,"method":1,"params":null}')[0].params is None


@quickly
@given(
    st.lists(
        st.tuples(st.integers(1, 2**32 - 1), st.sampled_from([*METHODS.values()]), json_values),
        max_size=5,
    ),
    white_space,
)
def test_commands_survive_the_way_through_a_frame(
    commands: list[tuple[int, Method, object]], separator: bytes
) -> None:
    frame = b" " + separator.join(
        json.dumps(
            {"id": number, "method": METHOD_NUMBERS[method], "params": {"p": value}}
        ).encode()
        for number, method, value in commands
    )

    read = decode(frame)

    assert [(c.id, c.method, json.loads(c.params or b"")) for c in read] == [
        (number, method, {"p": value}) for number, method, value in commands
    ]
