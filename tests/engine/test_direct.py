"""Direct messages between two nodes over Redis, shards, and foreign channel layers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.channel_rules import inbox
from realtime.engine.base import Outgoing
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.protocol.messages import Publication
from tests.engine.bench import PLAIN
from tests.engine.direct_parts import KINDS, SHORT_TIMEOUT, TIMEOUT, answer_double, read
from tests.engine.layered_nodes import two_nodes
from tests.redis_server import RedisServer
from tests.unit.parts import data, eventually


@pytest.fixture(params=KINDS)
async def nodes(
    request: pytest.FixtureRequest, redis_servers: list[RedisServer], unique: str
) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes over each layer, with open inboxes."""
    async with two_nodes(request.param, redis_servers, unique) as started:
        for node in started:
            await node.direct.open()
        yield started


# messages


async def test_messages_arrive_complete_and_in_their_order(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    bodies = read(other)

    for number in range(50):
        await one.direct.send(other.uid, "s", b"%d" % number)

    await eventually(lambda: len(bodies) >= 50)
    assert bodies == [b"%d" % number for number in range(50)]


async def test_message_names_its_sender(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    senders: list[str] = []
    other.direct.handle("s", lambda sender, body: senders.append(sender))

    await one.direct.send(other.uid, "s", b"1")

    await eventually(lambda: bool(senders))
    assert senders == [one.uid]


async def test_message_reaches_its_receiver_alone(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    mine, others = read(one), read(other)

    await one.direct.send(other.uid, "s", b'"to the other"')
    await one.direct.send(one.uid, "s", b'"to myself"')

    await eventually(lambda: bool(mine and others))
    assert (mine, others) == ([b'"to myself"'], [b'"to the other"'])


BODIES = {
    "text": '"ä 漢 🎉"'.encode(),
    "HTML and line separators": '"<b>&amp;</b>\u2028"'.encode(),
    "control characters": b'"\\u0000\\n\\"\\\\"',
    "spelling of numbers": b"[1.0,1e2,-0,12345678901234567890123]",
    "white space": b'{ "a" :\n[ 1 ,\t2 ] }',
    "a megabyte": b'"' + b"x" * 2**20 + b'"',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_bodies_of_message_and_answer_arrive_as_they_were_sent(
    nodes: tuple[Node, Node], body: bytes
) -> None:
    one, other = nodes
    bodies = read(other)
    answer_double(other)

    await one.direct.send(other.uid, "s", body)
    answer = await one.direct.ask(other.uid, "double", body, TIMEOUT)

    assert answer == b"[" + body + b"," + body + b"]"
    await eventually(lambda: bool(bodies))
    assert bodies == [body]


# questions


async def test_both_nodes_answer_each_others_questions(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    answer_double(one)
    answer_double(other)

    answers = await asyncio.gather(
        *(one.direct.ask(other.uid, "double", b"%d" % number, TIMEOUT) for number in range(20)),
        *(other.direct.ask(one.uid, "double", b"%d" % number, TIMEOUT) for number in range(20, 40)),
    )

    assert answers == [b"[%d,%d]" % (number, number) for number in range(40)]


@pytest.mark.parametrize("silence", ["no node", "no reader", "no answer"])
async def test_answer_that_does_not_come_in_time_fails_the_question(
    nodes: tuple[Node, Node], silence: str
) -> None:
    one, other = nodes
    if silence == "no answer":
        read(other)

    with pytest.raises(EngineUnavailable, match=r"0\.2 s"):
        await one.direct.ask(
            "nobody" if silence == "no node" else other.uid, "s", b"1", SHORT_TIMEOUT
        )


async def test_answer_that_comes_too_late_is_ignored(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = nodes
    go_on = asyncio.Event()
    messages = read(one)

    async def answer(body: bytes) -> bytes:
        if body == b'"late"':
            await go_on.wait()
            await other.direct.send(one.uid, "s", b'"the answer follows"')
        return body

    other.direct.handle("question", lambda sender, body: answer(body))
    with pytest.raises(EngineUnavailable):
        await one.direct.ask(other.uid, "question", b'"late"', SHORT_TIMEOUT)

    go_on.set()
    await eventually(lambda: bool(messages))

    assert await one.direct.ask(other.uid, "question", b'"in time"', TIMEOUT) == b'"in time"'
    assert [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []


# undecodable messages


@pytest.mark.parametrize("text", ["null", "{}", "[]", '["s"]', '[1,"node",0,false,1]', '"' * 2])
async def test_undecodable_message_is_logged_and_the_next_one_arrives(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture, text: str
) -> None:
    one, other = nodes
    bodies = read(other)

    await one.broker.publish(Outgoing(inbox(other.uid), Publication(data(text)), PLAIN))
    await one.direct.send(other.uid, "s", b"2")

    await eventually(lambda: bool(bodies))
    assert bodies == [b"2"]
    assert [
        record.levelname for record in caplog.records if "unknown direct message" in record.msg
    ] == ["WARNING"]


async def test_handler_that_fails_is_logged_and_the_next_message_arrives(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = nodes
    bodies = read(other)

    def fail(sender: str, body: bytes) -> None:
        raise LookupError("no such thing")

    other.direct.handle("failing", fail)
    await one.direct.send(other.uid, "failing", b"1")
    await one.direct.send(other.uid, "s", b"2")

    await eventually(lambda: bool(bodies))
    assert bodies == [b"2"]
    assert "no such thing" in caplog.text


# the inbox


async def test_inbox_is_not_listed_as_a_channel(nodes: tuple[Node, Node], unique: str) -> None:
    one, other = nodes
    await other.broker.subscribe(unique)

    assert await one.channels() == [unique]
    assert await other.channels() == [unique]
