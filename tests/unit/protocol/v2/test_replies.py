"""Replies of the second generation in both formats: the key, or the field, names the method."""

from __future__ import annotations

import pytest

from realtime.errors import ERRORS, Error, InternalError, NamespaceNotFound
from realtime.protocol.messages import (
    ClientInfo,
    Command,
    ConnectResult,
    EmptyResult,
    HistoryResult,
    Method,
    PresenceResult,
    PresenceStatsResult,
    Publication,
    RefreshResult,
    Result,
    RPCResult,
    StreamPosition,
    SubRefreshResult,
    SubscribeResult,
)
from realtime.protocol.v2 import client_pb2 as pb
from tests.unit.parts import data
from tests.unit.protocol.v2.parts import (
    FULL,
    FULL_TEXT,
    JSON,
    PB_FULL,
    PERSON,
    PROTOBUF,
    RAW,
    reply_of,
)

LARGE = 2**64 - 1


def publications(*offsets: int) -> tuple[Publication, ...]:
    return tuple(Publication(data(str(offset)), None, offset) for offset in offsets)


def pb_publications(*offsets: int) -> list[pb.Publication]:
    return [pb.Publication(data=str(offset).encode(), offset=offset) for offset in offsets]


def positioned(*offsets: int, top: int, recovered: bool) -> SubscribeResult:
    return SubscribeResult(
        recoverable=True,
        position=StreamPosition(top, "E"),
        publications=publications(*offsets),
        recovered=recovered,
        positioned=True,
        was_recovering=True,
    )


POSITIONED = pb.SubscribeResult(
    recoverable=True, epoch="E", positioned=True, was_recovering=True, offset=6
)

RESULTS: dict[str, tuple[Method, Result, str, pb.Reply]] = {
    "connect": (
        Method.CONNECT,
        ConnectResult("C", "1.0", ping=25, pong=True),
        '"connect":{"client":"C","version":"1.0","ping":25,"pong":true}',
        pb.Reply(connect=pb.ConnectResult(client="C", version="1.0", ping=25, pong=True)),
    ),
    "connect with everything, subs sorted": (
        Method.CONNECT,
        ConnectResult(
            "C",
            "1.0",
            True,
            300,
            {
                "ns:desk": SubscribeResult(
                    recoverable=True, positioned=True, position=StreamPosition(0, "E")
                ),
                "ns:a": SubscribeResult(),
            },
            data(RAW),
            25,
            True,
            "S",
            "N",
            2**41 + 1,
        ),
        '"connect":{"client":"C","version":"1.0","expires":true,"ttl":300,"data":{"a":1.0},"subs":'
        '{"ns:a":{},"ns:desk":{"recoverable":true,"epoch":"E","positioned":true}},'
        '"ping":25,"pong":true,"session":"S","node":"N","time":2199023255553}',
        pb.Reply(
            connect=pb.ConnectResult(
                client="C",
                version="1.0",
                expires=True,
                ttl=300,
                data=RAW,
                subs={
                    "ns:a": pb.SubscribeResult(),
                    "ns:desk": pb.SubscribeResult(recoverable=True, epoch="E", positioned=True),
                },
                ping=25,
                pong=True,
                session="S",
                node="N",
                time=2**41 + 1,
            )
        ),
    ),
    "connect without pings": (
        Method.CONNECT,
        ConnectResult("C", "1.0"),
        '"connect":{"client":"C","version":"1.0"}',
        pb.Reply(connect=pb.ConnectResult(client="C", version="1.0")),
    ),
    "subscribe without positioning": (
        Method.SUBSCRIBE,
        SubscribeResult(),
        '"subscribe":{}',
        pb.Reply(subscribe=pb.SubscribeResult()),
    ),
    "subscribe that asked for recovery where it is off": (
        Method.SUBSCRIBE,
        SubscribeResult(was_recovering=True),
        '"subscribe":{"was_recovering":true}',
        pb.Reply(subscribe=pb.SubscribeResult(was_recovering=True)),
    ),
    "subscribe with expiry and data": (
        Method.SUBSCRIBE,
        SubscribeResult(expires=True, ttl=60, data=data(RAW)),
        '"subscribe":{"expires":true,"ttl":60,"data":{"a":1.0}}',
        pb.Reply(subscribe=pb.SubscribeResult(expires=True, ttl=60, data=RAW)),
    ),
    "positioned, nothing published": (
        Method.SUBSCRIBE,
        SubscribeResult(positioned=True, position=StreamPosition(0, "E")),
        '"subscribe":{"epoch":"E","positioned":true}',
        pb.Reply(subscribe=pb.SubscribeResult(epoch="E", positioned=True)),
    ),
    "first subscribe": (
        Method.SUBSCRIBE,
        SubscribeResult(recoverable=True, positioned=True, position=StreamPosition(LARGE, "E")),
        f'"subscribe":{{"recoverable":true,"epoch":"E","offset":{LARGE},"positioned":true}}',
        pb.Reply(
            subscribe=pb.SubscribeResult(recoverable=True, epoch="E", offset=LARGE, positioned=True)
        ),
    ),
    "recovered: the offset asked for, and what came after it": (
        Method.SUBSCRIBE,
        positioned(5, 6, top=6, recovered=True),
        '"subscribe":{"recoverable":true,"epoch":"E","publications":[{"data":5,"offset":5},'
        '{"data":6,"offset":6}],"recovered":true,"offset":4,"positioned":true,'
        '"was_recovering":true}',
        pb.Reply(
            subscribe=pb.SubscribeResult(
                recoverable=True,
                epoch="E",
                publications=pb_publications(5, 6),
                recovered=True,
                offset=4,
                positioned=True,
                was_recovering=True,
            )
        ),
    ),
    "recovered from the beginning": (
        Method.SUBSCRIBE,
        positioned(1, top=1, recovered=True),
        '"subscribe":{"recoverable":true,"epoch":"E","publications":[{"data":1,"offset":1}],'
        '"recovered":true,"positioned":true,"was_recovering":true}',
        pb.Reply(
            subscribe=pb.SubscribeResult(
                recoverable=True,
                epoch="E",
                publications=pb_publications(1),
                recovered=True,
                positioned=True,
                was_recovering=True,
            )
        ),
    ),
    "recovered, nothing missed": (
        Method.SUBSCRIBE,
        positioned(top=6, recovered=True),
        '"subscribe":{"recoverable":true,"epoch":"E","recovered":true,"offset":6,'
        '"positioned":true,"was_recovering":true}',
        pb.Reply(
            subscribe=pb.SubscribeResult(
                recoverable=True,
                epoch="E",
                recovered=True,
                offset=6,
                positioned=True,
                was_recovering=True,
            )
        ),
    ),
    "not recovered: no publications, and the top": (
        Method.SUBSCRIBE,
        positioned(5, 6, top=6, recovered=False),
        '"subscribe":{"recoverable":true,"epoch":"E","offset":6,"positioned":true,'
        '"was_recovering":true}',
        pb.Reply(subscribe=POSITIONED),
    ),
    "unsubscribe": (
        Method.UNSUBSCRIBE,
        EmptyResult(),
        '"unsubscribe":{}',
        pb.Reply(unsubscribe=pb.EmptyResult()),
    ),
    "publish": (
        Method.PUBLISH,
        EmptyResult(),
        '"publish":{}',
        pb.Reply(publish=pb.EmptyResult()),
    ),
    "presence sorted": (
        Method.PRESENCE,
        PresenceResult({"D": ClientInfo("", "D"), "C": FULL}),
        f'"presence":{{"presence":{{"C":{FULL_TEXT},"D":{{"user":"","client":"D"}}}}}}',
        pb.Reply(
            presence=pb.PresenceResult(presence={"C": PB_FULL, "D": pb.ClientInfo(client="D")})
        ),
    ),
    "presence of nobody": (
        Method.PRESENCE,
        PresenceResult({}),
        '"presence":{"presence":{}}',
        pb.Reply(presence=pb.PresenceResult()),
    ),
    "presence_stats": (
        Method.PRESENCE_STATS,
        PresenceStatsResult(2, 1),
        '"presence_stats":{"num_clients":2,"num_users":1}',
        pb.Reply(presence_stats=pb.PresenceStatsResult(num_clients=2, num_users=1)),
    ),
    "presence_stats of nobody": (
        Method.PRESENCE_STATS,
        PresenceStatsResult(0, 0),
        '"presence_stats":{"num_clients":0,"num_users":0}',
        pb.Reply(presence_stats=pb.PresenceStatsResult()),
    ),
    "history": (
        Method.HISTORY,
        HistoryResult((Publication(data(RAW), PERSON, 4, "u"),), StreamPosition(6, "E")),
        '"history":{"publications":[{"data":{"a":1.0},"info":{"user":"17","client":"C"},'
        '"offset":4}],"epoch":"E","offset":6}',
        pb.Reply(
            history=pb.HistoryResult(
                publications=[
                    pb.Publication(data=RAW, info=pb.ClientInfo(user="17", client="C"), offset=4)
                ],
                epoch="E",
                offset=6,
            )
        ),
    ),
    "history of nothing has all three": (
        Method.HISTORY,
        HistoryResult((), StreamPosition(0, "")),
        '"history":{"publications":[],"epoch":"","offset":0}',
        pb.Reply(history=pb.HistoryResult()),
    ),
    "rpc": (
        Method.RPC,
        RPCResult(data(RAW)),
        '"rpc":{"data":{"a":1.0}}',
        pb.Reply(rpc=pb.RPCResult(data=RAW)),
    ),
    "rpc without data": (
        Method.RPC,
        RPCResult(None),
        '"rpc":{}',
        pb.Reply(rpc=pb.RPCResult()),
    ),
    "refresh names no client": (
        Method.REFRESH,
        RefreshResult("C", "1.0", True, 60),
        '"refresh":{"expires":true,"ttl":60}',
        pb.Reply(refresh=pb.RefreshResult(expires=True, ttl=60)),
    ),
    "refresh without expiry": (
        Method.REFRESH,
        RefreshResult("C", "1.0"),
        '"refresh":{}',
        pb.Reply(refresh=pb.RefreshResult()),
    ),
    "sub_refresh": (
        Method.SUB_REFRESH,
        SubRefreshResult(True, 60),
        '"sub_refresh":{"expires":true,"ttl":60}',
        pb.Reply(sub_refresh=pb.SubRefreshResult(expires=True, ttl=60)),
    ),
    "sub_refresh without expiry": (
        Method.SUB_REFRESH,
        SubRefreshResult(),
        '"sub_refresh":{}',
        pb.Reply(sub_refresh=pb.SubRefreshResult()),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_reply_in_json_is_one_object_in_schema_order(name: str) -> None:
    method, result, text, _ = RESULTS[name]
    assert JSON.result(Command(9, method, b"{}"), result).decode() == f'{{"id":9,{text}}}'


@pytest.mark.parametrize("name", RESULTS)
def test_reply_in_protobuf_is_a_message_of_the_schema(name: str) -> None:
    method, result, _, expected = RESULTS[name]
    expected.id = 9
    assert reply_of(PROTOBUF.result(Command(9, method, b""), result)) == expected


def test_every_method_with_a_reply_is_there() -> None:
    silent = {Method.PING, Method.SEND, Method.PONG}
    assert {method for method, *_ in RESULTS.values()} == set(Method) - silent


def test_empty_result_is_present_on_the_wire() -> None:
    command = Command(5, Method.UNSUBSCRIBE, b"")
    assert JSON.result(command, EmptyResult()) == b'{"id":5,"unsubscribe":{}}'
    assert PROTOBUF.result(command, EmptyResult()) == bytes.fromhex("04 08 05 3a 00")


# errors

MESSAGES = {102: "unknown channel"}
"""Errors whose text differs from that of the first generation."""


@pytest.mark.parametrize("kind", ERRORS)
def test_error_reply_has_code_and_message_and_is_marked_if_temporary(kind: type[Error]) -> None:
    command = Command(2**32 - 1, Method.RPC, b"")
    message = MESSAGES.get(kind.code, kind.message)
    temporary = kind.code in (100, 111)
    mark = ',"temporary":true' if temporary else ""

    text = f'{{"id":4294967295,"error":{{"code":{kind.code},"message":"{message}"{mark}}}}}'
    assert JSON.error(command, kind()).decode() == text
    assert reply_of(PROTOBUF.error(command, kind())) == pb.Reply(
        id=2**32 - 1, error=pb.Error(code=kind.code, message=message, temporary=temporary)
    )


def test_text_that_the_site_gave_is_kept() -> None:
    error = Error.received(102, "theirs")
    assert JSON.error(Command(1, Method.RPC, b""), error) == (
        b'{"id":1,"error":{"code":102,"message":"theirs"}}'
    )
    assert (NamespaceNotFound().message, InternalError().temporary) == ("namespace not found", True)


def test_site_says_whether_its_error_is_temporary() -> None:
    command = Command(1, Method.RPC, b"")
    assert JSON.error(command, Error(1001, "no <", temporary=True)) == (
        b'{"id":1,"error":{"code":1001,"message":"no \\u003c","temporary":true}}'
    )
    assert JSON.error(command, Error.received(0, "")) == b'{"id":1,"error":{"code":0}}'
