"""Pushes of the second generation in both formats, and those of unidirectional connections."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import (
    Disconnect,
    DisconnectExpired,
    DisconnectForced,
    DisconnectPermissionDenied,
    DisconnectServerError,
    DisconnectTooManyRequests,
    Error,
    Expired,
    LimitExceeded,
    PermissionDenied,
    TokenExpired,
    TooManyRequests,
)
from realtime.payload import Payload
from realtime.protocol.codec import Codec
from realtime.protocol.frames import Frame, single_messages
from realtime.protocol.messages import (
    INSUFFICIENT_STATE,
    SERVER_UNSUBSCRIBE,
    SUBSCRIPTION_EXPIRED,
    ClientInfo,
    Command,
    ConnectRequest,
    ConnectResult,
    Method,
    Publication,
    StreamPosition,
    SubscribeResult,
)
from realtime.protocol.v2 import client_pb2 as pb
from realtime.protocol.v2.json import UnidirectionalJSONCodec
from tests.unit.parts import data, json_values, quickly
from tests.unit.protocol.v2.parts import (
    FULL,
    FULL_TEXT,
    JSON,
    PB_FULL,
    PB_PERSON,
    PERSON,
    PERSON_TEXT,
    PROTOBUF,
    RAW,
    reply_of,
)

DOWN = UnidirectionalJSONCodec()

PUSHES: dict[str, tuple[Callable[[Codec], bytes | None], str, pb.Push]] = {
    "publication": (
        lambda codec: codec.publication("ns:a", Publication(data(RAW))),
        '"channel":"ns:a","pub":{"data":{"a":1.0}}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=RAW)),
    ),
    "publication of null": (
        lambda codec: codec.publication("ns:a", Publication(data("null"))),
        '"channel":"ns:a","pub":{"data":null}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=b"null")),
    ),
    "publication with history": (
        lambda codec: codec.publication("ns:a", Publication(data(RAW), None, 2**64 - 1, "u")),
        '"channel":"ns:a","pub":{"data":{"a":1.0},"offset":18446744073709551615}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=RAW, offset=2**64 - 1)),
    ),
    "publication by a client": (
        lambda codec: codec.publication("ns:a", Publication(data("1"), FULL, 7, "u")),
        f'"channel":"ns:a","pub":{{"data":1,"info":{FULL_TEXT},"offset":7}}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=b"1", info=PB_FULL, offset=7)),
    ),
    "publication with tags, sorted": (
        lambda codec: codec.publication(
            "ns:a", Publication(data("1"), None, 7, "u", {"z": "1", "b": ""})
        ),
        '"channel":"ns:a","pub":{"data":1,"offset":7,"tags":{"b":"","z":"1"}}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=b"1", offset=7, tags={"z": "1", "b": ""})),
    ),
    "publication with no tags": (
        lambda codec: codec.publication("ns:a", Publication(data("1"), tags={})),
        '"channel":"ns:a","pub":{"data":1}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=b"1")),
    ),
    "delta": (
        lambda codec: codec.publication(
            "ns:a", Publication(Payload(b"delta", b'"delta"'), delta=True)
        ),
        '"channel":"ns:a","pub":{"data":"delta","delta":true}',
        pb.Push(channel="ns:a", pub=pb.Publication(data=b"delta", delta=True)),
    ),
    "join": (
        lambda codec: codec.join("ns:a", FULL),
        f'"channel":"ns:a","join":{{"info":{FULL_TEXT}}}',
        pb.Push(channel="ns:a", join=pb.Join(info=PB_FULL)),
    ),
    "leave": (
        lambda codec: codec.leave("ns:a", PERSON),
        f'"channel":"ns:a","leave":{{"info":{PERSON_TEXT}}}',
        pb.Push(channel="ns:a", leave=pb.Leave(info=PB_PERSON)),
    ),
    "unsubscribe by the server": (
        lambda codec: codec.unsubscribe("ns:a", *SERVER_UNSUBSCRIBE),
        '"channel":"ns:a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}',
        pb.Push(channel="ns:a", unsubscribe=pb.Unsubscribe(code=2000, reason="server unsubscribe")),
    ),
    "unsubscribe because of a lost position": (
        lambda codec: codec.unsubscribe("ns:a", *INSUFFICIENT_STATE),
        '"channel":"ns:a","unsubscribe":{"code":2500,"reason":"insufficient state"}',
        pb.Push(channel="ns:a", unsubscribe=pb.Unsubscribe(code=2500, reason="insufficient state")),
    ),
    "unsubscribe because of expiry": (
        lambda codec: codec.unsubscribe("ns:a", *SUBSCRIPTION_EXPIRED),
        '"channel":"ns:a","unsubscribe":{"code":2501,"reason":"subscription expired"}',
        pb.Push(
            channel="ns:a", unsubscribe=pb.Unsubscribe(code=2501, reason="subscription expired")
        ),
    ),
    "subscribe": (
        lambda codec: codec.subscribed("ns:a", SubscribeResult()),
        '"channel":"ns:a","subscribe":{}',
        pb.Push(channel="ns:a", subscribe=pb.Subscribe()),
    ),
    "subscribe with everything that belongs there": (
        lambda codec: codec.subscribed(
            "ns:a",
            SubscribeResult(
                expires=True,
                ttl=60,
                recoverable=True,
                position=StreamPosition(2, "E"),
                publications=(Publication(data("1"), None, 2),),
                recovered=True,
                positioned=True,
                was_recovering=True,
                data=data(RAW),
            ),
        ),
        '"channel":"ns:a","subscribe":{"recoverable":true,"epoch":"E","offset":2,'
        '"positioned":true,"data":{"a":1.0}}',
        pb.Push(
            channel="ns:a",
            subscribe=pb.Subscribe(
                recoverable=True, epoch="E", offset=2, positioned=True, data=RAW
            ),
        ),
    ),
    "refresh": (
        lambda codec: codec.refreshed(True, 300),
        '"refresh":{"expires":true,"ttl":300}',
        pb.Push(refresh=pb.Refresh(expires=True, ttl=300)),
    ),
    "refresh that ends the expiry": (
        lambda codec: codec.refreshed(False, 0),
        '"refresh":{}',
        pb.Push(refresh=pb.Refresh()),
    ),
    "disconnect": (
        lambda codec: codec.disconnect(DisconnectForced()),
        '"disconnect":{"code":3503,"reason":"force disconnect"}',
        pb.Push(disconnect=pb.Disconnect(code=3503, reason="force disconnect")),
    ),
}


@pytest.mark.parametrize("name", PUSHES)
def test_push_in_json_stands_in_a_reply_without_id(name: str) -> None:
    encode, text, _ = PUSHES[name]
    assert encode(JSON) == f'{{"push":{{{text}}}}}'.encode()


@pytest.mark.parametrize("name", PUSHES)
def test_push_of_a_unidirectional_connection_stands_alone(name: str) -> None:
    encode, text, _ = PUSHES[name]
    assert encode(DOWN) == f"{{{text}}}".encode()


@pytest.mark.parametrize("name", PUSHES)
def test_push_in_protobuf_is_a_message_of_the_schema(name: str) -> None:
    encode, _, push = PUSHES[name]
    message = encode(PROTOBUF)
    assert message is not None
    assert reply_of(message) == pb.Reply(push=push)
    assert reply_of(message).HasField("push")


def test_ping_is_an_empty_reply() -> None:
    assert (JSON.ping(), DOWN.ping(), PROTOBUF.ping()) == (b"{}", b"{}", b"\x00")


def test_clients_are_pinged_and_messages_joined() -> None:
    described = [(c.generation, c.format, c.binary, c.server_pings) for c in (JSON, PROTOBUF, DOWN)]

    assert described == [
        (2, "json", False, True),
        (2, "protobuf", True, True),
        (2, "json", False, True),
    ]
    assert (JSON.separator, DOWN.separator, PROTOBUF.separator) == (b"\n", b"\n", b"")


# what is dangerous in a line of JSON

DANGEROUS = '<\n&>\u2028\u2029"\\é'
EVIL = ClientInfo(DANGEROUS, DANGEROUS, data(json.dumps(DANGEROUS)), data('{\n"a":\n1\n}'))


@pytest.mark.parametrize(
    "message",
    [
        JSON.publication(DANGEROUS, Publication(data('[\n1,\n"\\n"\n]'))),
        JSON.publication(DANGEROUS, Publication(data("[\n1\n]"), None, 7)),
        JSON.publication("a", Publication(data("1"), EVIL, 7, "", {DANGEROUS: DANGEROUS})),
        JSON.join(DANGEROUS, EVIL),
        JSON.unsubscribe(DANGEROUS, 2000, DANGEROUS),
        JSON.subscribed(DANGEROUS, SubscribeResult(data=data("[\n1\n]"))),
        JSON.disconnect(Disconnect(4000, DANGEROUS)),
        JSON.result(
            Command(1, Method.CONNECT, b""),
            ConnectResult("C", DANGEROUS, subs={DANGEROUS: SubscribeResult()}, data=data("[\n]")),
        ),
        JSON.error(Command(1, Method.RPC, b""), Error(1000, DANGEROUS)),
    ],
    ids=[
        "publication",
        "publication with history",
        "publication with everything",
        "join",
        "unsubscribe",
        "subscribe",
        "disconnect",
        "connect",
        "error",
    ],
)
def test_no_message_has_a_line_break_or_is_not_json(message: bytes) -> None:
    assert b"\n" not in message
    assert not set("<&>\u2028\u2029") & set(message.decode())
    assert json.loads(message)


@quickly
@given(
    st.text(),
    st.text(),
    json_values,
    st.integers(0, 2**64 - 1),
    st.dictionaries(st.text(), st.text(), max_size=3),
)
def test_publication_survives_the_way_to_a_client(
    channel: str, user: str, value: object, offset: int, tags: dict[str, str]
) -> None:
    text = json.dumps(value, indent=1)
    publication = Publication(data(text), ClientInfo(user, "C"), offset, "", tags)

    line = JSON.publication(channel, publication)
    push = reply_of(PROTOBUF.publication(channel, publication)).push

    assert b"\n" not in line
    body = json.loads(line)["push"]
    assert (body["channel"], body["pub"]["data"]) == (channel, value)
    assert body["pub"]["info"] == {"user": user, "client": "C"}
    assert (body["pub"].get("offset", 0), body["pub"].get("tags", {})) == (offset, tags)
    assert (push.channel, push.pub.data.decode(), push.pub.info.user) == (channel, text, user)
    assert (push.pub.offset, dict(push.pub.tags)) == (offset, tags)


# unidirectional connections


def test_reply_of_connect_is_a_push() -> None:
    result = ConnectResult("C", "1", True, 60, {"a": SubscribeResult()}, data("1"), 25, session="S")
    assert DOWN.result(Command(1, Method.CONNECT, b""), result) == (
        b'{"connect":{"client":"C","version":"1","expires":true,"ttl":60,"data":1,'
        b'"subs":{"a":{}},"ping":25,"session":"S"}}'
    )


def test_only_frame_of_a_client_is_the_request_of_connect() -> None:
    [command] = DOWN.decode(b'{ "token": "t", "subs": {"a": null} }')
    assert command.method is Method.CONNECT
    assert DOWN.params(command, ConnectRequest) == ConnectRequest("t", subs={"a": None})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TokenExpired(), DisconnectExpired),
        (Expired(), DisconnectExpired),
        (TooManyRequests(), DisconnectTooManyRequests),
        (PermissionDenied(), DisconnectPermissionDenied),
        (LimitExceeded(), DisconnectServerError),
        (Error(1000, "of a site"), DisconnectServerError),
    ],
    ids=lambda value: str(value) if isinstance(value, Error) else "",
)
def test_error_ends_a_connection_that_has_no_replies(
    error: Error, expected: type[Disconnect]
) -> None:
    with pytest.raises(expected):
        DOWN.error(Command(1, Method.CONNECT, b""), error)


def test_frame_is_taken_apart_for_transports_that_send_one_message_each() -> None:
    messages = [DOWN.ping(), DOWN.unsubscribe("a\n", 2000, "\n"), DOWN.ping()]
    assert single_messages(Frame(DOWN.separator.join(messages), False)) == messages
