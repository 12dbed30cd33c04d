"""Letters between two nodes over real engines: Redis, shards, and foreign channel layers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from realtime.channel_rules import inbox
from realtime.errors import EngineUnavailable
from realtime.node.node import Node
from realtime.protocol.messages import Publication
from tests.engine.bench import PLAIN
from tests.engine.layered_nodes import LAYERS, OWN, SHARDS, two_nodes
from tests.redis_server import RedisServer
from tests.unit.parts import data, eventually

KINDS = [OWN, SHARDS, *(name for name in LAYERS if "drops" not in name)]
"""Layers that drop may drop letters: nothing is promised of those."""

PATIENCE = 10.0
SHORT_PATIENCE = 0.2


@pytest.fixture(params=KINDS)
async def nodes(
    request: pytest.FixtureRequest, redis_servers: list[RedisServer], unique: str
) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes over each layer, with open mailboxes."""
    async with two_nodes(request.param, redis_servers, unique) as started:
        for node in started:
            await node.post.open()
        yield started


def read(node: Node, subject: str = "s") -> list[bytes]:
    """The bodies of the letters about a subject, as they come."""
    bodies: list[bytes] = []
    node.post.handle(subject, lambda sender, body: bodies.append(body))
    return bodies


async def double(body: bytes) -> bytes:
    return b"[" + body + b"," + body + b"]"


def answer_double(node: Node) -> None:
    """Answer questions with the question twice."""
    node.post.handle("double", lambda sender, body: double(body))


# letters


async def test_letters_arrive_complete_and_in_their_order(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    bodies = read(other)

    for number in range(50):
        await one.post.send(other.uid, "s", b"%d" % number)

    await eventually(lambda: len(bodies) >= 50)
    assert bodies == [b"%d" % number for number in range(50)]


async def test_letter_tells_its_sender(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    senders: list[str] = []
    other.post.handle("s", lambda sender, body: senders.append(sender))

    await one.post.send(other.uid, "s", b"1")

    await eventually(lambda: bool(senders))
    assert senders == [one.uid]


async def test_letter_reaches_its_addressee_alone(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    mine, others = read(one), read(other)

    await one.post.send(other.uid, "s", b'"to the other"')
    await one.post.send(one.uid, "s", b'"to myself"')

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
async def test_bodies_of_letter_and_answer_arrive_as_they_were_sent(
    nodes: tuple[Node, Node], body: bytes
) -> None:
    one, other = nodes
    bodies = read(other)
    answer_double(other)

    await one.post.send(other.uid, "s", body)
    answer = await one.post.ask(other.uid, "double", body, PATIENCE)

    assert answer == b"[" + body + b"," + body + b"]"
    await eventually(lambda: bool(bodies))
    assert bodies == [body]


# questions


async def test_both_nodes_answer_each_others_questions(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    answer_double(one)
    answer_double(other)

    answers = await asyncio.gather(
        *(one.post.ask(other.uid, "double", b"%d" % number, PATIENCE) for number in range(20)),
        *(other.post.ask(one.uid, "double", b"%d" % number, PATIENCE) for number in range(20, 40)),
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
        await one.post.ask(
            "nobody" if silence == "no node" else other.uid, "s", b"1", SHORT_PATIENCE
        )


async def test_answer_that_comes_too_late_is_ignored(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = nodes
    go_on = asyncio.Event()
    letters = read(one)

    async def answer(body: bytes) -> bytes:
        if body == b'"late"':
            await go_on.wait()
            await other.post.send(one.uid, "s", b'"the answer follows"')
        return body

    other.post.handle("question", lambda sender, body: answer(body))
    with pytest.raises(EngineUnavailable):
        await one.post.ask(other.uid, "question", b'"late"', SHORT_PATIENCE)

    go_on.set()
    await eventually(lambda: bool(letters))

    assert await one.post.ask(other.uid, "question", b'"in time"', PATIENCE) == b'"in time"'
    assert [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []


# what is no letter


@pytest.mark.parametrize("text", ["null", "{}", "[]", '["s"]', '[1,"node",0,false,1]', '"' * 2])
async def test_what_is_no_letter_is_logged_and_the_next_letter_arrives(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture, text: str
) -> None:
    one, other = nodes
    bodies = read(other)

    await one.broker.publish(inbox(other.uid), Publication(data(text)), PLAIN)
    await one.post.send(other.uid, "s", b"2")

    await eventually(lambda: bool(bodies))
    assert bodies == [b"2"]
    assert [record.levelname for record in caplog.records if "cannot read" in record.msg] == [
        "WARNING"
    ]


async def test_handler_that_fails_is_logged_and_the_next_letter_arrives(
    nodes: tuple[Node, Node], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = nodes
    bodies = read(other)

    def fail(sender: str, body: bytes) -> None:
        raise LookupError("no such thing")

    other.post.handle("failing", fail)
    await one.post.send(other.uid, "failing", b"1")
    await one.post.send(other.uid, "s", b"2")

    await eventually(lambda: bool(bodies))
    assert bodies == [b"2"]
    assert "no such thing" in caplog.text


# the mailbox


async def test_mailbox_is_no_channel_with_subscribers(
    nodes: tuple[Node, Node], unique: str
) -> None:
    one, other = nodes
    await other.broker.subscribe(unique)

    assert await one.channels() == [unique]
    assert await other.channels() == [unique]
