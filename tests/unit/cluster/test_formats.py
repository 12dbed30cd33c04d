"""What nodes write to each other, byte by byte: nodes of the previous version read it."""

from __future__ import annotations

import msgspec
import pytest

from realtime import channel_rules
from realtime.cluster import control, survey
from realtime.cluster.control import (
    BlockUser,
    ControlMessage,
    DisconnectUser,
    EndAuthSession,
    SubscribeSome,
    UnblockUser,
    Unsubscribe,
)
from realtime.cluster.direct import DirectMessage
from realtime.cluster.survey import (
    Answers,
    AskConnections,
    AskSubscribers,
    ClientReport,
    ConnectionsAnswer,
    SubscribersAnswer,
    SurveyAnswer,
    SurveyQuestion,
)
from realtime.engine.limits import ListVersion
from realtime.operators.questions import (
    AskActivity,
    AskMirror,
    AskPast,
    AskRecent,
    AskUsers,
    RecentAnswer,
    Refusal,
    UsersAnswer,
)
from realtime.protocol.messages import StreamPosition
from tests.unit.parts import data

CONTROL = [
    (
        Unsubscribe("17", "a", "N1"),
        '{"do":"unsubscribe","user":"17","channel":"a","origin":"N1"}',
    ),
    (
        Unsubscribe("17", "a", "N1", ask=True),
        '{"do":"unsubscribe","user":"17","channel":"a","origin":"N1","ask":true}',
    ),
    (
        DisconnectUser("17", 3012, "C", "N1"),
        '{"do":"disconnect","user":"17","code":3012,"keep":"C","origin":"N1"}',
    ),
    (
        EndAuthSession("17", "digest", 3005, "N1"),
        '{"do":"end_logins","user":"17","login":"digest","code":3005,"origin":"N1"}',
    ),
    (
        BlockUser("17", 1700000000.5, "N1", ListVersion(5, 7)),
        '{"do":"block","user":"17","until":1700000000.5,"origin":"N1","version":[5,7]}',
    ),
    (
        UnblockUser("17", "N1", ListVersion(5, 7)),
        '{"do":"unblock","user":"17","origin":"N1","version":[5,7]}',
    ),
    (
        SubscribeSome(
            user="17",
            client="C",
            session="S",
            origin="N1",
            channel="a",
            info="1",
            expires_at=5.5,
            since=StreamPosition(7, "E"),
            overrides={"presence": True},
        ),
        '{"do":"subscribe","channel":"a","info":"1","data":null,"expires_at":5.5,'
        '"since":{"offset":7,"epoch":"E"},"overrides":{"presence":true},"user":"17","client":"C",'
        '"session":"S","origin":"N1"}',
    ),
]


@pytest.mark.parametrize(("message", "text"), CONTROL)
def test_control_message(message: ControlMessage, text: str) -> None:
    assert control.encode(message).raw == text.encode()
    assert control.decode(data(text)) == message


QUESTIONS = [
    (
        AskConnections("17", origin="N1", survey="S"),
        '{"ask":"connections","user":"17","origin":"N1","survey":"S"}',
    ),
    (
        AskSubscribers(("a", "b"), origin="N1", survey="S"),
        '{"ask":"subscribers","channels":["a","b"],"origin":"N1","survey":"S"}',
    ),
    (
        AskActivity(5, "bytes", "chat", "a*", origin="N1", survey="S"),
        '{"ask":"activity","limit":5,"order":"bytes","namespace":"chat","pattern":"a*",'
        '"origin":"N1","survey":"S"}',
    ),
    (
        AskMirror("M", "17", "a*", masked=True, taken={"N1": 7}, origin="N1", survey="S"),
        '{"ask":"mirror","mirror":"M","user":"17","channels":"a*","masked":true,"taken":{"N1":7},'
        '"ends":false,"origin":"N1","survey":"S"}',
    ),
    (AskPast(origin="N1", survey="S"), '{"ask":"past","origin":"N1","survey":"S"}'),
    (
        AskRecent("17", origin="N1", survey="S"),
        '{"ask":"recent","user":"17","origin":"N1","survey":"S"}',
    ),
    (
        AskUsers("1", 50, origin="N1", survey="S"),
        '{"ask":"users","prefix":"1","limit":50,"origin":"N1","survey":"S"}',
    ),
]


@pytest.mark.parametrize(("question", "text"), QUESTIONS)
def test_survey_question(question: SurveyQuestion, text: str) -> None:
    async def never(question: SurveyQuestion) -> SurveyAnswer:
        raise AssertionError("was asked")

    answers = Answers(dict.fromkeys((type(each) for each, _ in QUESTIONS), never))

    assert survey.encode_question(question).raw == text.encode()
    assert answers.question(data(text)) == question


REPORT = ClientReport(
    "C",
    "websocket",
    1.5,
    2,
    ["a"],
    '{"n":1}',
    "192.0.2.7",
    "Browser",
    "js 5",
    "2 json",
    "5e55",
    2.5,
)
ANSWERS = [
    (
        ConnectionsAnswer("N1", "first", 3, [REPORT]),
        b'{"answer":"connections","node":"N1","name":"first","total":3,'
        b'"connections":[["C","websocket",1.5,2,["a"],"{\\"n\\":1}",'
        b'"192.0.2.7","Browser","js 5","2 json","5e55",2.5]]}',
    ),
    (
        SubscribersAnswer("N1", "first", [4, 0]),
        b'{"answer":"subscribers","node":"N1","name":"first","numbers":[4,0]}',
    ),
    (
        RecentAnswer("N1", "first", 1.5, 3012, "x", [Refusal(1.0, "publish", "a", 103, "no")]),
        b'{"answer":"recent","node":"N1","name":"first","ended_at":1.5,"code":3012,"reason":"x",'
        b'"refusals":[[1.0,"publish","a",103,"no"]]}',
    ),
    (
        UsersAnswer("N1", "first", {"17": 2}, 1),
        b'{"answer":"users","node":"N1","name":"first","users":{"17":2},"total":1}',
    ),
]


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
def test_survey_answer(answer: SurveyAnswer, text: bytes) -> None:
    assert survey.encode_answer(answer) == text
    assert survey.decode_answer(text, type(answer)) == answer


def test_report_of_an_older_node_is_read() -> None:
    report = msgspec.json.decode(b'["C","websocket",1.5,2,["a"],null]', type=ClientReport)
    assert report == ClientReport("C", "websocket", 1.5, 2, ["a"])


def test_direct_message() -> None:
    message = DirectMessage("s", "N1", 7, True, msgspec.Raw(b'{"a":1}'))
    assert msgspec.json.encode(message) == b'["s","N1",7,true,{"a":1}]'


def test_internal_channels() -> None:
    names = (channel_rules.CONTROL, channel_rules.QUESTIONS, channel_rules.inbox("N1"))
    assert names == ("\u00a7control", "\u00a7questions", "\u00a7node:N1")
