"""Commands of the second generation in JSON, as clients send them."""

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
from realtime.protocol.v2.commands import METHODS
from tests.unit.parts import json_values, quickly, white_space
from tests.unit.protocol.v2.parts import JSON

PONG = Command(0, Method.PONG, None)
SERVED: list[Method] = [method for method in METHODS.values() if method is not Method.PING]


def decode(frame: bytes) -> list[Command]:
    return list(JSON.decode(frame))


def test_commands_of_a_frame_come_in_order() -> None:
    frame = (
        b'{"connect":{"token":"t"},"id":1}\n{"id": 2, "rpc": {}}{"send":{}}\r\n\n'
        b'{}\n{"publish":{\n},"id":3}\n'
    )

    assert decode(frame) == [
        Command(1, Method.CONNECT, b'{"token":"t"}'),
        Command(2, Method.RPC, b"{}"),
        Command(0, Method.SEND, b"{}"),
        PONG,
        Command(3, Method.PUBLISH, b"{\n}"),
    ]


@pytest.mark.parametrize("method", SERVED)
def test_key_names_the_method_in_any_letter_case(method: Method) -> None:
    for key in (method, method.upper(), method.title()):
        assert decode(f'{{"ID":7,"{key}":{{}}}}'.encode()) == [Command(7, method, b"{}")]


@pytest.mark.parametrize("method", SERVED)
def test_first_request_in_the_order_of_the_schema_wins(method: Method) -> None:
    later = SERVED[SERVED.index(method) :]
    keys = ",".join(f'"{key}":{{}}' for key in reversed(later))
    assert decode(f'{{{keys},"id":1}}'.encode()) == [Command(1, method, b"{}")]


@pytest.mark.parametrize(
    ("frame", "command"),
    [
        (b'{"id":5,"connect":{},"method":7}', Command(5, Method.CONNECT, b"{}")),
        (b'{"id":5,"new":[{"id":6}],"rpc":{}}', Command(5, Method.RPC, b"{}")),
        (b'{"id":5,"connect":null,"rpc":{}}', Command(5, Method.RPC, b"{}")),
        (b'{"id":5,"send":{}}', Command(5, Method.SEND, b"{}")),
        (b'{"id":4294967295,"rpc":{}}', Command(2**32 - 1, Method.RPC, b"{}")),
        (b'{"rpc":{"data":"\\ud83d"},"id":1,"x":0}', Command(1, Method.RPC, b'{"data":"\\ufffd"}')),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_unknown_keys_and_null_do_no_harm(frame: bytes, command: Command) -> None:
    assert decode(frame) == [command]


@pytest.mark.parametrize(
    "frame",
    [
        b"{}",
        b" { } ",
        b'{"id":0}',
        b'{"id":null}',
        b'{"new":1}',
        b'{"rpc":{}}',
        b'{"id":0,"connect":{}}',
        b'{"send":null}',
    ],
)
def test_command_without_id_and_send_is_a_pong(frame: bytes) -> None:
    assert decode(frame) == [PONG]


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b" \n\t\r ",
        b"null",
        b"5",
        b"[]",
        b'"{}"',
        b"hello",
        b'{"id":5}',
        b'{"id":5,"nope":{}}',
        b'{"id":5,"method":7}',
        b'{"id":5,"method":7,"params":{}}',
        b'{"id":5,"rpc":null}',
        b'{"id":5,"ping":{}}',
        b'{"id":"5","rpc":{}}',
        b'{"id":-5,"rpc":{}}',
        b'{"id":5.5,"rpc":{}}',
        b'{"id":true,"rpc":{}}',
        b'{"id":4294967296,"rpc":{}}',
        b'{"publish":{},"send":{}}',
        b'{"id":5,"rpc":{}',
        b'{"id":5,"rpc":{}}}',
        b'{"id":5,"rpc":{\xff}}',
        b"[" * 60_000,
    ],
    ids=lambda frame: frame[:40].decode(errors="replace") or "empty frame",
)
def test_malformed_frame_is_a_bad_request(frame: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        decode(frame)


@pytest.mark.parametrize("broken", [b"hello", b'{"id":5}', b'{"id":"5"}', b"null"])
def test_commands_before_a_broken_one_are_given_first(broken: bytes) -> None:
    commands = JSON.decode(b'{"id":1,"rpc":{}}\n' + broken)
    assert next(commands).id == 1
    with pytest.raises(DisconnectBadRequest):
        next(commands)


# requests

FILTER = FilterNode(
    "and", nodes=(FilterNode(key="k", cmp="in", vals=("a", "b")), FilterNode(key="k", val="v"))
)

REQUESTS: list[tuple[str, Request]] = [
    ("{}", ConnectRequest()),
    (
        '{"token":"t","data":{"a": 1},"name":"js","version":"5","headers":{"X":"1","y":null},'
        '"subs":{"a":{"recover":true,"offset":3,"epoch":"E"},"b":null},"flag":1}',
        ConnectRequest(
            "t",
            Raw(b'{"a": 1}'),
            {"a": SubscribeRequest(since=StreamPosition(3, "E")), "b": None},
            "js",
            "5",
            {"X": "1"},
        ),
    ),
    (
        '{"token":null,"data":null,"subs":null,"name":null,"version":null,"headers":null}',
        ConnectRequest(data=Raw(b"null")),
    ),
    (
        '{"Token":"t","Subs":{"A":{"RECOVER":true,"new":{}}}}',
        ConnectRequest("t", subs={"A": SubscribeRequest(since=StreamPosition(0, ""))}),
    ),
    ('{"channel":"a","flag":1}', SubscribeRequest("a", flag=1)),
    (
        '{"channel":"a","token":"t","recover":true,"epoch":"E","offset":18446744073709551615,'
        '"data":[],"positioned":true,"recoverable":true,"join_leave":true,"delta":"fossil",'
        '"flag":3,"type":1,"phase":2,"cursor":"c","limit":5,"asc":true}',
        SubscribeRequest(
            "a",
            "t",
            StreamPosition(2**64 - 1, "E"),
            Raw(b"[]"),
            True,
            True,
            True,
            None,
            3,
            1,
            StreamPosition(2**64 - 1, "E"),
            2,
            "c",
            5,
        ),
    ),
    ('{"key":"k","type":1,"removed":true}', PublishRequest(None, ABSENT, 1, "k", True)),
    (
        '{"channel":null,"token":null,"recover":null,"epoch":null,"offset":null,"positioned":null,'
        '"recoverable":null,"join_leave":null,"delta":null,"tf":null,"flag":null,"type":null}',
        SubscribeRequest(),
    ),
    ('{"offset":3,"epoch":"E"}', SubscribeRequest()),
    (
        '{"tf":{"Op":"and","nodes":[{"key":"k","cmp":"in","vals":["a","b"],"new":1},'
        '{"key":"k","val":"v","nodes":null}]}}',
        SubscribeRequest(tags_filter=FILTER),
    ),
    ('{"tf":{}}', SubscribeRequest(tags_filter=FilterNode())),
    ('{"CHANNEL":"a"}', ChannelRequest("a")),
    ('{"channel":"a","data":null}', PublishRequest("a", Raw(b"null"))),
    ('{"channel":"a"}', PublishRequest("a", ABSENT)),
    ('{"channel":"a"}', HistoryRequest("a")),
    (
        '{"channel":"a","limit":-1,"since":{"Offset":2,"epoch":"E"},"reverse":true}',
        HistoryRequest("a", -1, StreamPosition(2, "E"), True),
    ),
    (
        '{"channel":"a","limit":null,"since":{},"reverse":null}',
        HistoryRequest("a", 0, StreamPosition(0, "")),
    ),
    ('{"channel":"a","since":null}', HistoryRequest("a")),
    ('{"method":"m","data":{"a": 1}}', RPCRequest("m", Raw(b'{"a": 1}'))),
    ('{"data":1}', SendRequest(Raw(b"1"))),
    ('{"token":"t"}', RefreshRequest("t")),
    ('{"token":"t","channel":"$a"}', SubRefreshRequest("$a", "t")),
]


@pytest.mark.parametrize(("text", "request_"), REQUESTS)
def test_request_is_decoded(text: str, request_: Request) -> None:
    command = Command(1, None, text.encode())
    assert JSON.params(command, type(request_)) == request_


SHAPES = [shape for shape in Request.__args__ if shape is not EmptyRequest]


@pytest.mark.parametrize("text", [b'"x"', b"5", b"[]", b"true", b'{"a":', b"{\xff}"])
@pytest.mark.parametrize("shape", SHAPES)
def test_request_that_is_no_object_is_a_bad_request(shape: type[Request], text: bytes) -> None:
    with pytest.raises(DisconnectBadRequest):
        JSON.params(Command(1, None, text), shape)


def nested_filter(depth: int) -> str:
    return '{"nodes":[' * depth + "{}" + "]}" * depth


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('{"token":5}', ConnectRequest),
        ('{"subs":[]}', ConnectRequest),
        ('{"subs":{"a":5}}', ConnectRequest),
        ('{"subs":{"a":{"tf":5}}}', ConnectRequest),
        ('{"headers":{"a":5}}', ConnectRequest),
        ('{"name":5}', ConnectRequest),
        ('{"channel":5}', SubscribeRequest),
        ('{"recover":1}', SubscribeRequest),
        ('{"offset":-1}', SubscribeRequest),
        ('{"offset":"1"}', SubscribeRequest),
        ('{"offset":18446744073709551616}', SubscribeRequest),
        ('{"flag":9223372036854775808}', SubscribeRequest),
        ('{"type":"map"}', SubscribeRequest),
        ('{"delta":"other"}', SubscribeRequest),
        ('{"tf":[]}', SubscribeRequest),
        ('{"tf":{"op":1}}', SubscribeRequest),
        ('{"tf":{"vals":"a"}}', SubscribeRequest),
        ('{"tf":{"vals":[null]}}', SubscribeRequest),
        ('{"tf":{"nodes":[null]}}', SubscribeRequest),
        (f'{{"tf":{nested_filter(64)}}}', SubscribeRequest),
        (f'{{"tf":{nested_filter(5000)}}}', SubscribeRequest),
        ('{"limit":2147483648}', HistoryRequest),
        ('{"limit":1.5}', HistoryRequest),
        ('{"since":5}', HistoryRequest),
        ('{"since":{"offset":-1}}', HistoryRequest),
        ('{"since":{"offset":18446744073709551616}}', HistoryRequest),
        ('{"method":5}', RPCRequest),
        ('{"token":{}}', RefreshRequest),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else value.__name__,
)
def test_value_of_the_wrong_type_is_a_bad_request(text: str, shape: type[Request]) -> None:
    with pytest.raises(DisconnectBadRequest):
        JSON.params(Command(1, None, text.encode()), shape)


def test_filter_may_be_nested_deeply() -> None:
    text = f'{{"tf":{nested_filter(63)}}}'.encode()
    assert JSON.params(Command(1, None, text), SubscribeRequest).tags_filter is not None


@quickly
@given(
    st.lists(
        st.tuples(st.integers(1, 2**32 - 1), st.sampled_from(SERVED), json_values), max_size=5
    ),
    white_space,
)
def test_commands_survive_the_way_through_a_frame(
    commands: list[tuple[int, Method, object]], separator: bytes
) -> None:
    frame = b" " + separator.join(
        json.dumps({"id": number, method: {"p": value}}).encode()
        for number, method, value in [*commands, (9, Method.RPC, 1)]
    )

    read = [(c.id, c.method, json.loads(c.params or b"")) for c in decode(frame)]

    assert read == [
        (number, method, {"p": value}) for number, method, value in [*commands, (9, "rpc", 1)]
    ]
