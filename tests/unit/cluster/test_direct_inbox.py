"""The inbox of a node: opening it, undecodable messages, and the end."""

from __future__ import annotations

import asyncio

import pytest

from realtime.channel_rules import inbox
from realtime.errors import EngineUnavailable
from realtime.node.node import SHUTDOWN_TIMEOUT
from tests.unit.cluster.direct_parts import (
    TIMEOUT,
    Answerer,
    Pair,
    Reader,
    answer_of,
    put,
)
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, eventually, turns

# undecodable messages

GARBAGE = [
    "null",
    "7",
    '"a message"',
    "{}",
    '{"subject":"s"}',
    "[]",
    '["s"]',
    '["s","node",0,false]',
    '[1,"node",0,false,1]',
    '["s",null,0,false,1]',
    '["s","node","0",false,1]',
    '["s","node",1.5,false,1]',
    '["s","node",0,0,1]',
    "[[[[[[]]]]]]",
]


@pytest.mark.parametrize("text", GARBAGE)
async def test_undecodable_message_is_logged_and_the_next_one_arrives(
    pair: Pair, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    reader = Reader(pair.other, "s")
    await put(pair, text)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await pair.one.direct.send(pair.other.uid, "s", b"2")
    assert reader.bodies == [b"2"]


async def test_longer_message_of_a_newer_node_is_read(pair: Pair) -> None:
    """During an upgrade nodes of two versions run side by side."""
    reader = Reader(pair.other, "s")
    await put(pair, '["s","node",0,false,{"a":1},"something new"]')
    assert reader.messages == [("s", "node", b'{"a":1}')]


# the inbox


async def test_openings_subscribe_once_and_wait_for_it(closed: Pair) -> None:
    subscribed = closed.other_engine.calls["subscribe"]
    closed.other_engine.hold("subscribe")
    opening = [asyncio.create_task(closed.other.direct.open()) for _ in range(2)]
    await turns(20)
    assert [task.done() for task in opening] == [False, False]

    closed.other_engine.go_on("subscribe")
    await asyncio.gather(*opening)
    await closed.other.direct.open()

    assert closed.other_engine.calls["subscribe"] - subscribed == 1


async def test_opening_that_failed_is_tried_again(closed: Pair) -> None:
    reader = Reader(closed.other, "s")
    closed.other_engine.failing.add("subscribe")
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await closed.other.direct.open()

    closed.other_engine.failing.clear()
    await closed.other.direct.open()
    await closed.one.direct.send(closed.other.uid, "s", b"1")

    assert reader.bodies == [b"1"]


async def test_openings_at_the_same_time_fail_together(closed: Pair) -> None:
    subscribed = closed.other_engine.calls["subscribe"]
    closed.other_engine.failing.add("subscribe")

    results = await asyncio.gather(
        *(closed.other.direct.open() for _ in range(3)), return_exceptions=True
    )

    assert [type(result) for result in results] == [EngineUnavailable] * 3
    assert closed.other_engine.calls["subscribe"] - subscribed == 1


async def test_opening_tried_again_at_once_is_the_one_others_wait_for(closed: Pair) -> None:
    """Also where those that failed with it have not noticed yet."""
    engine, direct = closed.other_engine, closed.other.direct
    subscribed = engine.calls["subscribe"]
    engine.failing.add("subscribe")

    async def insist() -> None:
        try:
            await direct.open()
        except EngineUnavailable:
            engine.failing.clear()
            await direct.open()

    first, second = asyncio.create_task(insist()), asyncio.create_task(direct.open())
    with pytest.raises(EngineUnavailable):
        await second
    await direct.open()
    await first

    assert engine.calls["subscribe"] - subscribed == 2


async def test_opening_goes_on_when_who_began_it_is_cancelled(closed: Pair) -> None:
    subscribed = closed.other_engine.calls["subscribe"]
    reader = Reader(closed.other, "s")
    closed.other_engine.hold("subscribe")
    first, second = (asyncio.create_task(closed.other.direct.open()) for _ in range(2))
    await closed.other_engine.reached("subscribe")

    first.cancel()
    closed.other_engine.go_on("subscribe")
    await second
    await closed.one.direct.send(closed.other.uid, "s", b"1")

    assert first.cancelled()
    assert reader.bodies == [b"1"]
    assert closed.other_engine.calls["subscribe"] - subscribed == 1


async def test_opening_that_failed_when_nobody_waited_is_tried_again(closed: Pair) -> None:
    engine, direct = closed.other_engine, closed.other.direct
    engine.hold("subscribe")
    opening = asyncio.create_task(direct.open())
    await engine.reached("subscribe")
    opening.cancel()
    engine.failing.add("subscribe")
    engine.go_on("subscribe")
    await eventually(lambda: "subscribe" not in engine.waiting)
    await turns()
    engine.failing.clear()

    await direct.open()

    assert inbox(closed.other.uid) in engine.broker.subscribed


# the end


async def test_question_that_is_over_is_forgotten(pair: Pair, clock: Clock) -> None:
    """A node asks for as long as it runs, and some questions get no answer."""
    answerer = Answerer(pair.other, "s")
    asking = [
        asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", body, TIMEOUT))
        for body in (b"1", b"2", b"3")
    ]
    await eventually(lambda: len(answerer.questions) == 3)
    assert len(pair.one.direct._questions) == 3

    answerer.answer(b"1")
    asking[1].cancel()
    await answer_of(asking[0])
    await clock.advance(TIMEOUT + 0.1)
    await asyncio.wait(asking)

    assert isinstance(asking[2].exception(), EngineUnavailable)
    assert pair.one.direct._questions == {}


async def test_answer_under_way_is_sent_before_the_node_ends(pair: Pair, clock: Clock) -> None:
    answerer = Answerer(pair.other, "s")
    asking = asyncio.create_task(pair.one.direct.ask(pair.other.uid, "s", b"1", 1000.0))
    await eventually(lambda: b"1" in answerer.questions)

    stopping = asyncio.create_task(pair.other.stop())
    await turns(20)
    answerer.answer(b"1")
    await eventually(stopping.done)

    assert await answer_of(asking) == b"[1]"


async def test_node_that_stopped_leaves_no_task_of_direct_messages(
    pair: Pair, clock: Clock
) -> None:
    answerer = Answerer(pair.other, "s")

    async def ask() -> None:
        await pair.one.direct.ask(pair.other.uid, "s", b"1", 1000.0)

    pair.one.spawn(ask())
    await eventually(lambda: b"1" in answerer.questions)

    for node in (pair.other, pair.one):
        await stop(node, clock, SHUTDOWN_TIMEOUT)

    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})


async def test_message_to_a_node_that_stopped_is_lost(pair: Pair, clock: Clock) -> None:
    reader = Reader(pair.other, "s")
    await pair.one.direct.send(pair.other.uid, "s", b"1")
    await stop(pair.other, clock, SHUTDOWN_TIMEOUT)
    await pair.one.direct.send(pair.other.uid, "s", b"2")
    assert reader.bodies == [b"1"]
