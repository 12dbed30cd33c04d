"""Direct messages between two nodes: order, questions and answers, loss."""

from __future__ import annotations

import asyncio

import pytest

from realtime.channel_rules import inbox
from realtime.errors import EngineUnavailable
from realtime.protocol.messages import Publication
from tests.unit.cluster.direct_parts import (
    TIMEOUT,
    Answerer,
    Pair,
    Reader,
    answer_of,
    answer_to,
    echo,
    levels,
    put,
)
from tests.unit.parts import Clock, data, eventually, turns

# messages


async def test_messages_are_delivered_in_their_order_whatever_their_subject(pair: Pair) -> None:
    reader = Reader(pair.other, "a", "b")

    for number in range(100):
        await pair.one.direct.send(pair.other.uid, "ab"[number % 2], b"%d" % number)

    assert reader.messages == [
        ("ab"[number % 2], pair.one.uid, b"%d" % number) for number in range(100)
    ]


async def test_message_reaches_its_receiver_alone_with_subject_sender_and_body(pair: Pair) -> None:
    reader, own = Reader(pair.other, "s", "another"), Reader(pair.one, "s", "another")
    await pair.one.direct.send(pair.other.uid, "s", b'{"a":1}')
    await pair.one.direct.send(pair.one.uid, "s", b"1")
    assert reader.messages == [("s", pair.one.uid, b'{"a":1}')]
    assert own.messages == [("s", pair.one.uid, b"1")]


async def test_message_to_a_node_without_inbox_is_lost_and_the_next_one_arrives(
    closed: Pair,
) -> None:
    reader = Reader(closed.other, "s")
    await closed.one.direct.send(closed.other.uid, "s", b"1")
    await closed.other.direct.open()
    await closed.one.direct.send(closed.other.uid, "s", b"2")
    assert reader.bodies == [b"2"]


async def test_message_without_a_handler_does_no_harm(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader(pair.other, "s")
    await pair.one.direct.send(pair.other.uid, "unknown", b"1")
    await pair.one.direct.send(pair.other.uid, "s", b"2")
    assert reader.bodies == [b"2"]
    assert levels(caplog) == set()


async def test_message_that_cannot_be_sent_fails_and_the_next_one_arrives(pair: Pair) -> None:
    reader = Reader(pair.other, "s")
    pair.engine.failing.add("publish")
    with pytest.raises(EngineUnavailable):
        await pair.one.direct.send(pair.other.uid, "s", b"1")

    pair.engine.failing.clear()
    await pair.one.direct.send(pair.other.uid, "s", b"2")

    assert reader.bodies == [b"2"]


BODIES = {
    "null": b"null",
    "text": '"ä 漢 🎉"'.encode(),
    "HTML": b'"<b>&amp;</b>"',
    "line separators": '"\u2028\u2029"'.encode(),
    "control characters": b'"\\u0000\\u001f\\n"',
    "quotes and backslashes": b'"\\"\\\\]"',
    "spelling of numbers": b"[1.0,1e2,-0,12345678901234567890123]",
    "white space": b'{ "a" :\n[ 1 ,\t2 ] }',
    "a key twice": b'{"a":1,"a":2}',
    "nesting": b"[" * 200 + b"]" * 200,
    "a megabyte": b'"' + b"x" * 2**20 + b'"',
    "many parts": b"[" + b",".join(b"%d" % number for number in range(50_000)) + b"]",
}
"""JSON that travels as it is."""


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_body_arrives_as_it_was_sent(pair: Pair, body: bytes) -> None:
    reader = Reader(pair.other, "s")
    pair.other.direct.handle("question", lambda sender, body: echo(body))

    await pair.one.direct.send(pair.other.uid, "s", body)
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "question", body, TIMEOUT))

    assert await answer_of(asking) == body
    assert reader.bodies == [body]


async def test_lone_surrogate_does_not_cost_a_message(pair: Pair) -> None:
    """Browsers write it for text cut in the middle of an emoji; it may be replaced."""
    reader = Reader(pair.other, "s")
    await pair.one.direct.send(pair.other.uid, "s", b'{"text":"\\ud83d"}')
    assert reader.bodies in ([b'{"text":"\\ud83d"}'], [b'{"text":"\\ufffd"}'])


@pytest.mark.parametrize(
    "subject", ["", "two words", 'qu"ote\\', "ä🎉", "<&>\u2028\x00", "x" * 1000]
)
async def test_any_text_may_be_a_subject(pair: Pair, subject: str) -> None:
    reader = Reader(pair.other, subject)
    await pair.one.direct.send(pair.other.uid, subject, b"1")
    assert reader.messages == [(subject, pair.one.uid, b"1")]


@pytest.mark.parametrize("body", [b"", b"{", b"1]", b'"\xff"', b"NaN", b"1],[2"])
async def test_body_that_is_no_json_is_not_sent(pair: Pair, body: bytes) -> None:
    published = pair.engine.calls["publish"]
    with pytest.raises(ValueError, match="JSON"):
        await pair.one.direct.send(pair.other.uid, "s", body)
    assert pair.engine.calls["publish"] == published


# questions and answers


async def test_both_nodes_may_ask_each_other_at_the_same_time(pair: Pair) -> None:
    """They number their questions alike."""
    first, second = Answerer(pair.other, "s"), Answerer(pair.one, "s")
    asking = asyncio.gather(
        pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT),
        pair.other.direct.ask(pair.one.uid, "s", b"2", TIMEOUT),
    )
    await eventually(lambda: bool(first.questions and second.questions))

    second.answer(b"2")
    first.answer(b"1")

    assert [*await answer_of(asking)] == [b"[1]", b"[2]"]


async def test_each_question_gets_its_own_answer_whichever_comes_first(pair: Pair) -> None:
    answerer = Answerer(pair.other, "s")
    bodies = [b"%d" % number for number in range(20)]
    asking = [
        asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", body, TIMEOUT))
        for body in bodies
    ]
    await eventually(lambda: len(answerer.questions) == 20)

    for body in reversed(bodies):
        answerer.answer(body)
        await turns()

    assert await answer_of(asyncio.gather(*asking)) == [b"[" + body + b"]" for body in bodies]


async def test_answer_of_a_handler_is_not_sent_where_none_was_asked(pair: Pair) -> None:
    answerer = Answerer(pair.other, "s")
    published = pair.other_engine.calls["publish"]

    await pair.one.direct.send(pair.other.uid, "s", b"1")
    await eventually(lambda: b"1" in answerer.questions)
    answerer.answer(b"1")
    await turns(20)

    assert pair.other_engine.calls["publish"] == published


SILENCE = ["no node", "no inbox", "no reader", "no answer", "a slow answer"]


@pytest.mark.parametrize("silence", SILENCE)
async def test_answer_that_does_not_come_in_time_fails_the_question(
    closed: Pair, clock: Clock, silence: str
) -> None:
    receiver = "nobody" if silence == "no node" else closed.other.uid
    if silence != "no inbox":
        await closed.other.direct.open()
    if silence == "no answer":
        Reader(closed.other, "s")
    elif silence != "no reader":
        Answerer(closed.other, "s")
    asking = asyncio.create_task(closed.one.direct.ask(receiver, "s", b"1", TIMEOUT))
    await turns()

    await clock.advance(TIMEOUT - 0.1)
    assert not asking.done()
    await clock.advance(0.2)

    with pytest.raises(EngineUnavailable, match="5 s"):
        await asking


async def test_question_that_hangs_on_its_way_fails_in_time(pair: Pair, clock: Clock) -> None:
    pair.engine.hold("publish")
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT))
    await pair.engine.reached("publish")

    await clock.advance(TIMEOUT + 0.1)

    with pytest.raises(EngineUnavailable):
        await asking
    pair.engine.go_on("publish")


async def test_question_that_cannot_be_sent_fails_at_once(pair: Pair) -> None:
    """The clock stands still, so the caller cannot have waited."""
    pair.engine.failing.add("publish")
    with pytest.raises(EngineUnavailable):
        await pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT)


async def test_answer_that_comes_too_late_is_ignored(
    pair: Pair, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    answerer = Answerer(pair.other, "s")
    late = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT))
    await eventually(lambda: b"1" in answerer.questions)
    await clock.advance(TIMEOUT + 0.1)
    with pytest.raises(EngineUnavailable):
        await late
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"2", TIMEOUT))
    await eventually(lambda: b"2" in answerer.questions)

    answerer.answer(b"1")
    await turns(20)
    assert not asking.done()
    answerer.answer(b"2")

    assert await answer_of(asking) == b"[2]"
    assert levels(caplog) == set()


async def test_answer_that_comes_twice_counts_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    answerer = Answerer(pair.one, "s")
    asking = asyncio.create_task(pair.other.direct.ask(pair.one.uid, "s", b"1", TIMEOUT))
    await eventually(lambda: b"1" in answerer.questions)

    for body in (b'"first"', b'"second"'):  # in one turn, before the one that asked wakes up
        answer = Publication(data(answer_to(1, body)))
        pair.other_engine.broker.receive(inbox(pair.other.uid), answer)

    assert await answer_of(asking) == b'"first"'
    assert levels(caplog) == set()


@pytest.mark.parametrize("number", [0, 1, 2**40, -1])
async def test_answer_nobody_asked_for_is_ignored(
    pair: Pair, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    reader = Reader(pair.other, "s")
    await put(pair, answer_to(number))
    await pair.one.direct.send(pair.other.uid, "s", b"2")
    assert reader.bodies == [b"2"]
    assert levels(caplog) == set()


async def test_handler_that_fails_to_answer_is_logged_and_the_question_fails_in_time(
    pair: Pair, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> bytes:
        raise LookupError("no such thing")

    pair.other.direct.handle("s", lambda sender, body: fail())
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT))
    await eventually(lambda: "no such thing" in caplog.text)

    await clock.advance(TIMEOUT + 0.1)

    with pytest.raises(EngineUnavailable):
        await asking


async def test_answer_that_cannot_be_sent_is_no_error_of_the_node_that_answers(
    pair: Pair, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Engines that are away are nothing new: the one that asked learns it from the silence."""
    answerer = Answerer(pair.other, "s")
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"1", TIMEOUT))
    await eventually(lambda: b"1" in answerer.questions)
    pair.other_engine.failing.add("publish")
    published = pair.other_engine.calls["publish"]

    answerer.answer(b"1")
    await eventually(lambda: pair.other_engine.calls["publish"] > published)
    await turns(20)
    await clock.advance(TIMEOUT + 0.1)

    with pytest.raises(EngineUnavailable):
        await asking
    assert levels(caplog) == set()
