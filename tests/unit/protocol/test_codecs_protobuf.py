"""The Protobuf format: messages of the schema behind their length, and malformed frames."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.internal.decoder import _DecodeVarint  # type: ignore[attr-defined]
from google.protobuf.message import Message

from realtime.errors import ERRORS, Error
from realtime.protocol.messages import (
    ClientInfo,
    Command,
    ConnectResult,
    EmptyResult,
    HistoryResult,
    NoResult,
    PresenceResult,
    PresenceStatsResult,
    Publication,
    RefreshResult,
    Result,
    StreamPosition,
    SubRefreshResult,
    SubscribeResult,
)
from realtime.protocol.v1 import client_pb2
from realtime.protocol.v1.protobuf import ProtobufCodec
from tests.unit.parts import data

OFFSET = ProtobufCodec(use_offset=True)
SEQ = ProtobufCodec(use_offset=False)

RAW = b'{ "a" : "<" }'
PERSON = ClientInfo("17", "C")
FULL = ClientInfo("17", "C", data(RAW), data(b'"x"'))
PB_PERSON = client_pb2.ClientInfo(user="17", client="C")
PB_FULL = client_pb2.ClientInfo(user="17", client="C", conn_info=RAW, chan_info=b'"x"')
BEYOND_32_BITS = 2 * 2**32 + 7


def reply_of(message: bytes) -> client_pb2.Reply:
    """Read a framed reply with the length reader of the Protobuf library."""
    length, start = _DecodeVarint(message, 0)
    assert len(message) == start + length
    return client_pb2.Reply.FromString(message[start:])


def subscribed(*offsets: int, top: int, recovered: bool = True) -> SubscribeResult:
    publications = tuple(Publication(data(RAW), None, offset) for offset in offsets)
    return SubscribeResult(
        recoverable=True,
        position=StreamPosition(top, "qKzD"),
        publications=publications,
        recovered=recovered,
    )


def both(result: Result, message: Message) -> tuple[Result, Message, Message]:
    return result, message, message


RESULTS = {
    "connect": both(
        ConnectResult(
            "C",
            "2.8.6",
            True,
            300,
            {
                "ns:desk": SubscribeResult(recoverable=True, position=StreamPosition(0, "qKzD")),
                "pp:#17": SubscribeResult(),
            },
        ),
        client_pb2.ConnectResult(
            client="C",
            version="2.8.6",
            expires=True,
            ttl=300,
            subs={
                "ns:desk": client_pb2.SubscribeResult(recoverable=True, epoch="qKzD"),
                "pp:#17": client_pb2.SubscribeResult(),
            },
        ),
    ),
    "refresh": both(
        RefreshResult("C", "1", True, 60),
        client_pb2.RefreshResult(client="C", version="1", expires=True, ttl=60),
    ),
    "sub_refresh": both(
        SubRefreshResult(True, 60), client_pb2.SubRefreshResult(expires=True, ttl=60)
    ),
    "subscribe that expires": both(
        SubscribeResult(expires=True, ttl=60), client_pb2.SubscribeResult(expires=True, ttl=60)
    ),
    "recovered, newest first in seq": (
        subscribed(5, 6, top=6),
        client_pb2.SubscribeResult(
            recoverable=True,
            epoch="qKzD",
            publications=[
                client_pb2.Publication(data=RAW, offset=5),
                client_pb2.Publication(data=RAW, offset=6),
            ],
            recovered=True,
            offset=6,
        ),
        client_pb2.SubscribeResult(
            recoverable=True,
            epoch="qKzD",
            publications=[
                client_pb2.Publication(data=RAW, seq=6),
                client_pb2.Publication(data=RAW, seq=5),
            ],
            recovered=True,
            seq=6,
        ),
    ),
    "not recovered, beyond 32 bits": (
        subscribed(top=BEYOND_32_BITS, recovered=False),
        client_pb2.SubscribeResult(recoverable=True, epoch="qKzD", offset=BEYOND_32_BITS),
        client_pb2.SubscribeResult(recoverable=True, epoch="qKzD", seq=7, gen=2),
    ),
    "presence": both(
        PresenceResult({"C": FULL, "D": ClientInfo("", "D")}),
        client_pb2.PresenceResult(presence={"C": PB_FULL, "D": client_pb2.ClientInfo(client="D")}),
    ),
    "presence_stats": both(
        PresenceStatsResult(2, 1), client_pb2.PresenceStatsResult(num_clients=2, num_users=1)
    ),
    "history with offset in both variants": (
        HistoryResult((Publication(data(RAW), PERSON, 4, "u"),)),
        client_pb2.HistoryResult(
            publications=[client_pb2.Publication(uid="u", data=RAW, info=PB_PERSON, offset=4)]
        ),
        client_pb2.HistoryResult(
            publications=[
                client_pb2.Publication(seq=4, uid="u", data=RAW, info=PB_PERSON, offset=4)
            ]
        ),
    ),
}


@pytest.mark.parametrize("codec", [OFFSET, SEQ], ids=["offset", "seq"])
@pytest.mark.parametrize("name", RESULTS)
def test_result_is_the_message_of_the_schema(name: str, codec: ProtobufCodec) -> None:
    result, in_offset, in_seq = RESULTS[name]
    expected = in_offset if codec is OFFSET else in_seq

    reply = reply_of(codec.result(Command(9, None, None), result))

    assert reply.id == 9
    assert not reply.HasField("error")
    assert type(expected).FromString(reply.result) == expected


@pytest.mark.parametrize("result", [NoResult(), EmptyResult(), SubscribeResult()])
def test_reply_without_content_carries_only_its_id(result: Result) -> None:
    assert reply_of(OFFSET.result(Command(9, None, None), result)) == client_pb2.Reply(id=9)


@pytest.mark.parametrize("kind", ERRORS)
def test_error_reply_has_code_and_message_and_no_result(kind: type[Error]) -> None:
    error = client_pb2.Error(code=kind.code, message=kind.message)
    reply = reply_of(OFFSET.error(Command(2**32 - 1, None, None), kind()))
    assert reply == client_pb2.Reply(id=2**32 - 1, error=error)


SUBSCRIBED = SubscribeResult(recoverable=True, position=StreamPosition(BEYOND_32_BITS, "qKzD"))


def push_of(message: bytes) -> client_pb2.Push:
    reply = reply_of(message)
    assert reply.id == 0
    return client_pb2.Push.FromString(reply.result)


@pytest.mark.parametrize(
    ("publication", "in_offset", "in_seq"),
    [
        pytest.param(
            Publication(data(RAW)),
            client_pb2.Publication(data=RAW),
            client_pb2.Publication(data=RAW),
            id="without history",
        ),
        pytest.param(
            Publication(data(RAW), FULL, 7, "u"),
            client_pb2.Publication(data=RAW, info=PB_FULL, offset=7),
            client_pb2.Publication(data=RAW, info=PB_FULL, seq=7),
            id="with history, by a client",
        ),
        pytest.param(
            Publication(data(RAW), None, BEYOND_32_BITS),
            client_pb2.Publication(data=RAW, offset=BEYOND_32_BITS),
            client_pb2.Publication(data=RAW, seq=7, gen=2),
            id="beyond 32 bits",
        ),
    ],
)
def test_publication_push_is_wrapped_twice_and_keeps_the_original_bytes(
    publication: Publication, in_offset: client_pb2.Publication, in_seq: client_pb2.Publication
) -> None:
    for codec, expected in ((OFFSET, in_offset), (SEQ, in_seq)):
        push = push_of(codec.publication("ns:a", publication))
        assert (push.type, push.channel) == (client_pb2.PUBLICATION, "ns:a")
        assert client_pb2.Publication.FromString(push.data) == expected


@pytest.mark.parametrize(
    ("message", "kind", "inner"),
    [
        (OFFSET.join("ns:a", PERSON), client_pb2.JOIN, client_pb2.Join(info=PB_PERSON)),
        (OFFSET.leave("ns:a", FULL), client_pb2.LEAVE, client_pb2.Leave(info=PB_FULL)),
        (OFFSET.unsubscribe("ns:a", 2000, "x"), client_pb2.UNSUB, client_pb2.Unsub()),
        (
            OFFSET.subscribed("ns:a", SUBSCRIBED),
            client_pb2.SUB,
            client_pb2.Sub(recoverable=True, epoch="qKzD", offset=BEYOND_32_BITS),
        ),
        (
            SEQ.subscribed("ns:a", SUBSCRIBED),
            client_pb2.SUB,
            client_pb2.Sub(recoverable=True, epoch="qKzD", seq=7, gen=2),
        ),
        (OFFSET.subscribed("ns:a", SubscribeResult()), client_pb2.SUB, client_pb2.Sub()),
    ],
    ids=["join", "leave", "unsub", "sub by offset", "sub by seq", "sub"],
)
def test_push_has_its_type_and_inner_message(message: bytes, kind: Any, inner: Message) -> None:
    push = push_of(message)
    assert (push.type, push.channel) == (kind, "ns:a")
    assert type(inner).FromString(push.data) == inner
