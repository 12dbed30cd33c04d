"""The JSON format: replies and pushes, byte by byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import ERRORS, Error, PermissionDenied
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
from realtime.protocol.v1.json import JSONCodec
from tests.unit.parts import data, json_values, quickly

OFFSET = JSONCodec(use_offset=True)
SEQ = JSONCodec(use_offset=False)
COMMAND = Command(1, None, None)

PERSON = ClientInfo("17", "C")
FULL = ClientInfo("17", "C", data('{"a": 1.0}'), data('"x"'))
PERSON_TEXT = '{"user":"17","client":"C"}'
FULL_TEXT = '{"user":"17","client":"C","conn_info":{"a":1.0},"chan_info":"x"}'
BEYOND_32_BITS = 2 * 2**32 + 7


def both(result: Result, text: str) -> list[object]:
    """A result that looks the same in both position variants."""
    return [result, text, text]


def subscribed(*offsets: int, top: int = 6, recovered: bool = True) -> SubscribeResult:
    publications = tuple(Publication(data(str(offset)), None, offset) for offset in offsets)
    return SubscribeResult(
        recoverable=True,
        position=StreamPosition(top, "qKzD"),
        publications=publications,
        recovered=recovered,
    )


RESULTS = {
    "ping": both(NoResult(), '{"id":9}'),
    "publish": both(EmptyResult(), '{"id":9,"result":{}}'),
    "connect": both(
        ConnectResult("C", "2.8.6"), '{"id":9,"result":{"client":"C","version":"2.8.6"}}'
    ),
    "connect that expires, with subs sorted": both(
        ConnectResult(
            "C",
            "2.8.6",
            True,
            300,
            {
                "pp:#17": SubscribeResult(),
                "ns:desk": SubscribeResult(recoverable=True, position=StreamPosition(0, "qKzD")),
            },
        ),
        '{"id":9,"result":{"client":"C","version":"2.8.6","expires":true,"ttl":300,'
        '"subs":{"ns:desk":{"recoverable":true,"epoch":"qKzD"},"pp:#17":{}}}}',
    ),
    "ttl is left out when 0": both(
        ConnectResult("C", "1", True, 0),
        '{"id":9,"result":{"client":"C","version":"1","expires":true}}',
    ),
    "refresh": both(
        RefreshResult("C", "1", True, 60),
        '{"id":9,"result":{"client":"C","version":"1","expires":true,"ttl":60}}',
    ),
    "sub_refresh": both(SubRefreshResult(True, 60), '{"id":9,"result":{"expires":true,"ttl":60}}'),
    "sub_refresh without expiry": both(SubRefreshResult(), '{"id":9,"result":{}}'),
    "subscribe": both(SubscribeResult(), '{"id":9,"result":{}}'),
    "subscribe that expires": both(
        SubscribeResult(expires=True, ttl=60), '{"id":9,"result":{"expires":true,"ttl":60}}'
    ),
    "subscribe with what this generation does not have": both(
        SubscribeResult(positioned=True, was_recovering=True, data=data("1")),
        '{"id":9,"result":{}}',
    ),
    "connect with what this generation does not have": both(
        ConnectResult("C", "1", ping=25, pong=True, session="s", node="n"),
        '{"id":9,"result":{"client":"C","version":"1"}}',
    ),
    "history with a position": both(
        HistoryResult((), StreamPosition(3, "qKzD")), '{"id":9,"result":{"publications":[]}}'
    ),
    "subscribe with nothing published": both(
        SubscribeResult(recoverable=True, position=StreamPosition(0, "qKzD")),
        '{"id":9,"result":{"recoverable":true,"epoch":"qKzD"}}',
    ),
    "recovered, newest first in seq": [
        subscribed(5, 6),
        '{"id":9,"result":{"recoverable":true,"epoch":"qKzD","publications":'
        '[{"data":5,"offset":5},{"data":6,"offset":6}],"recovered":true,"offset":6}}',
        '{"id":9,"result":{"recoverable":true,"seq":6,"epoch":"qKzD","publications":'
        '[{"seq":6,"data":6},{"seq":5,"data":5}],"recovered":true}}',
    ],
    "not recovered": [
        subscribed(4, recovered=False),
        '{"id":9,"result":{"recoverable":true,"epoch":"qKzD","publications":'
        '[{"data":4,"offset":4}],"offset":6}}',
        '{"id":9,"result":{"recoverable":true,"seq":6,"epoch":"qKzD","publications":'
        '[{"seq":4,"data":4}]}}',
    ],
    "position beyond 32 bits": [
        subscribed(top=BEYOND_32_BITS),
        '{"id":9,"result":{"recoverable":true,"epoch":"qKzD","recovered":true,'
        f'"offset":{BEYOND_32_BITS}}}}}',
        '{"id":9,"result":{"recoverable":true,"seq":7,"gen":2,"epoch":"qKzD","recovered":true}}',
    ],
    "presence sorted": both(
        PresenceResult({"D": ClientInfo("", "D"), "C": FULL}),
        f'{{"id":9,"result":{{"presence":{{"C":{FULL_TEXT},"D":{{"user":"","client":"D"}}}}}}}}',
    ),
    "empty presence": both(PresenceResult({}), '{"id":9,"result":{"presence":{}}}'),
    "presence_stats": both(
        PresenceStatsResult(2, 1), '{"id":9,"result":{"num_clients":2,"num_users":1}}'
    ),
    "empty presence_stats": both(
        PresenceStatsResult(0, 0), '{"id":9,"result":{"num_clients":0,"num_users":0}}'
    ),
    "history with offset in both variants": [
        HistoryResult((Publication(data("1"), PERSON, 4, "u"),)),
        f'{{"id":9,"result":{{"publications":[{{"uid":"u","data":1,"info":{PERSON_TEXT},'
        '"offset":4}]}}',
        f'{{"id":9,"result":{{"publications":[{{"seq":4,"uid":"u","data":1,"info":{PERSON_TEXT},'
        '"offset":4}]}}',
    ],
    "history oldest first": [
        HistoryResult((Publication(data("1"), None, 1, "u"), Publication(data("2"), None, 2, "v"))),
        '{"id":9,"result":{"publications":[{"uid":"u","data":1,"offset":1},'
        '{"uid":"v","data":2,"offset":2}]}}',
        '{"id":9,"result":{"publications":[{"seq":1,"uid":"u","data":1,"offset":1},'
        '{"seq":2,"uid":"v","data":2,"offset":2}]}}',
    ],
    "empty history": both(HistoryResult(()), '{"id":9,"result":{"publications":[]}}'),
}


@pytest.mark.parametrize("codec", [OFFSET, SEQ], ids=["offset", "seq"])
@pytest.mark.parametrize("name", RESULTS)
def test_reply_is_one_line_in_schema_order(name: str, codec: JSONCodec) -> None:
    result, in_offset, in_seq = RESULTS[name]
    text = in_offset if codec is OFFSET else in_seq
    assert codec.result(Command(9, None, None), result).decode() == f"{text}\n"  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ERRORS)
def test_error_reply_has_code_and_message_and_no_result(kind: type[Error]) -> None:
    text = f'{{"id":4294967295,"error":{{"code":{kind.code},"message":"{kind.message}"}}}}\n'
    assert OFFSET.error(Command(2**32 - 1, None, None), kind()).decode() == text


@pytest.mark.parametrize(
    ("publication", "in_offset", "in_seq"),
    [
        pytest.param(Publication(data("1")), '{"data":1}', '{"data":1}', id="without history"),
        pytest.param(
            Publication(data("1"), tags={"k": "<v>", "b": ""}),
            '{"data":1,"tags":{"b":"","k":"\\u003cv\\u003e"}}',
            '{"data":1,"tags":{"b":"","k":"\\u003cv\\u003e"}}',
            id="with tags",
        ),
        pytest.param(Publication(data("null")), '{"data":null}', '{"data":null}', id="null"),
        pytest.param(
            Publication(data("1"), PERSON),
            f'{{"data":1,"info":{PERSON_TEXT}}}',
            f'{{"data":1,"info":{PERSON_TEXT}}}',
            id="by a client",
        ),
        pytest.param(
            Publication(data('{"n": 1.0}'), None, 7, "u"),
            '{"data":{"n":1.0},"offset":7}',
            '{"seq":7,"data":{"n":1.0}}',
            id="with history",
        ),
        pytest.param(
            Publication(data("1"), FULL, BEYOND_32_BITS),
            f'{{"data":1,"info":{FULL_TEXT},"offset":{BEYOND_32_BITS}}}',
            f'{{"seq":7,"gen":2,"data":1,"info":{FULL_TEXT}}}',
            id="by a client, beyond 32 bits",
        ),
    ],
)
def test_publication_push_has_the_position_of_its_variant(
    publication: Publication, in_offset: str, in_seq: str
) -> None:
    for codec, text in ((OFFSET, in_offset), (SEQ, in_seq)):
        push = codec.publication("ns:a", publication).decode()
        assert push == f'{{"result":{{"channel":"ns:a","data":{text}}}}}\n'


@pytest.mark.parametrize("codec", [OFFSET, SEQ], ids=["offset", "seq"])
@pytest.mark.parametrize(
    ("push", "text"),
    [
        (
            lambda codec: codec.join("ns:a", PERSON),
            f'{{"result":{{"type":1,"channel":"ns:a","data":{{"info":{PERSON_TEXT}}}}}}}',
        ),
        (
            lambda codec: codec.leave("ns:a", FULL),
            f'{{"result":{{"type":2,"channel":"ns:a","data":{{"info":{FULL_TEXT}}}}}}}',
        ),
        (
            lambda codec: codec.unsubscribe("ns:a", 2500, "insufficient state"),
            '{"result":{"type":3,"channel":"ns:a","data":{}}}',
        ),
        (
            lambda codec: codec.subscribed("ns:a", SubscribeResult(was_recovering=True)),
            '{"result":{"type":5,"channel":"ns:a","data":{}}}',
        ),
    ],
    ids=["join", "leave", "unsub", "sub"],
)
def test_push_is_a_reply_without_id(codec: JSONCodec, push: object, text: str) -> None:
    assert push(codec).decode() == f"{text}\n"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("codec", "position"),
    [(OFFSET, '"epoch":"qKzD","offset":6'), (SEQ, '"seq":6,"epoch":"qKzD"')],
    ids=["offset", "seq"],
)
def test_sub_push_has_the_position_of_its_variant(codec: JSONCodec, position: str) -> None:
    text = f'{{"result":{{"type":5,"channel":"ns:a","data":{{"recoverable":true,{position}}}}}}}\n'
    assert codec.subscribed("ns:a", subscribed(5, 6)).decode() == text


DANGEROUS = "<&>\u2028\u2029é"
SAFE = r"\u003c\u0026\u003e\u2028\u2029é"
EVIL = ClientInfo(DANGEROUS, "C", data(f'"{DANGEROUS}"'))


@pytest.mark.parametrize(
    "message",
    [
        OFFSET.publication(DANGEROUS, Publication(data(f'"{DANGEROUS}"'))),
        OFFSET.publication("a", Publication(data("1"), EVIL)),
        OFFSET.publication(DANGEROUS, Publication(data("1"), None, 1)),
        OFFSET.join("a", EVIL),
        OFFSET.leave(DANGEROUS, PERSON),
        OFFSET.unsubscribe(DANGEROUS, 2000, ""),
        OFFSET.result(COMMAND, PresenceResult({"C": EVIL})),
        OFFSET.result(COMMAND, HistoryResult((Publication(data("1"), EVIL, 1),))),
        OFFSET.result(COMMAND, ConnectResult("C", "1", subs={DANGEROUS: SubscribeResult()})),
        OFFSET.error(COMMAND, Error(1000, DANGEROUS)),
    ],
    ids=[
        "channel and data",
        "user of a publication",
        "channel with history",
        "join",
        "leave",
        "unsub",
        "presence",
        "history",
        "connect",
        "error",
    ],
)
def test_dangerous_characters_are_escaped_everywhere(message: bytes) -> None:
    text = message.decode()
    assert SAFE in text
    assert not set(DANGEROUS[:-1]) & set(text)
    assert json.loads(text)


def test_error_of_the_application_keeps_its_code() -> None:
    text = '{"id":1,"error":{"code":1001,"message":"no \\u003c"}}\n'
    assert OFFSET.error(COMMAND, Error(1001, "no <")).decode() == text
    assert PermissionDenied.code == 103


def test_publications_of_history_have_their_tags() -> None:
    result = HistoryResult((Publication(data("1"), None, 7, tags={"k": "v"}),))
    reply = json.loads(OFFSET.result(COMMAND, result))
    assert reply["result"]["publications"] == [{"data": 1, "offset": 7, "tags": {"k": "v"}}]


@quickly
@given(st.text(), st.text(), json_values, st.integers(0, 2**64 - 1))
def test_publication_survives_the_way_to_a_client(
    channel: str, user: str, value: object, offset: int
) -> None:
    publication = Publication(data(json.dumps(value)), ClientInfo(user, "C"), offset)

    push = OFFSET.publication(channel, publication)

    assert push.endswith(b"\n")
    assert b"\n" not in push[:-1]
    body = json.loads(push)["result"]
    assert body["channel"] == channel
    assert body["data"]["data"] == value
    assert body["data"]["info"] == {"user": user, "client": "C"}
    assert body["data"].get("offset", 0) == offset
