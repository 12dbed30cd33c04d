"""Frames that a client sends at a relay node: owners that are busy, or have died."""

from __future__ import annotations

import gc

import pytest

from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import ANSWER_TIMEOUT, DELIVER_TIMEOUT
from tests.unit.cluster.direct_parts import levels
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.emulation.nodes import Nodes, quiet
from tests.unit.transports.emulation.parts import (
    CONNECT,
    LARGE,
    OPEN,
    Request,
    Visitor,
    ids_in,
    subscribe_command,
)


async def test_send_to_a_session_whose_owner_has_died_is_refused_within_four_seconds(
    nodes: Nodes, clock: Clock
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    await nodes.die(one)

    send = visitor.send(other, CONNECT)
    await eventually(lambda: nodes.engines[1].broker.count(relay_messages.Deliver) == 1)
    for _ in range(40):
        await clock.advance(0.1)

    await send.end()
    assert send.status == 503


async def test_send_is_refused_quietly_when_the_engine_goes_away(
    nodes: Nodes, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes away during the question, or during the check whether the owner is alive."""
    _, other = nodes.nodes
    visitor = await nodes.begun()
    engine = nodes.engines[1]
    engine.hold("publish")
    send = visitor.send(other, CONNECT)
    await eventually(lambda: "publish" in engine.waiting)
    first = engine.held["publish"]
    engine.hold("publish")
    await clock.advance(ANSWER_TIMEOUT)
    await eventually(lambda: engine.waiting == ["publish"] * 2)

    engine.failing.add("publish")
    first.set()
    await turns(20)
    engine.go_on("publish")
    await send.end()
    assert send.status == 503
    del send
    gc.collect()
    await turns()

    assert levels(caplog) == set()
    engine.failing.clear()


async def held(nodes: Nodes) -> tuple[Visitor, Request]:
    """A session at the first node that waits for its subscription, and its response there."""
    one, _ = nodes.nodes
    visitor = nodes.visitor()
    stream = visitor.receive(one)
    await stream.has(OPEN)
    nodes.engines[0].hold("subscribe")
    assert await visitor.say(one, CONNECT, subscribe_command("a")) == 204
    return visitor, stream


async def send_large(nodes: Nodes, visitor: Visitor, *numbers: int) -> list[Request]:
    """Send commands at the second node, one after another; each waits for its turn."""
    sends: list[Request] = []
    for number in numbers:
        sends.append(visitor.send(nodes.nodes[1], LARGE % number))
        await eventually(
            lambda: nodes.engines[1].broker.count(relay_messages.Deliver) == len(sends)
        )
    return sends


async def test_send_to_a_busy_owner_waits_until_it_is_taken(nodes: Nodes, clock: Clock) -> None:
    visitor, stream = await held(nodes)
    [send] = await send_large(nodes, visitor, 3)

    for _ in range(40):
        await clock.advance(0.1)
    assert not send.serving.done()
    nodes.engines[0].go_on("subscribe")

    await send.end()
    assert send.status == 204
    await quiet(nodes, stream)


async def test_send_that_was_refused_before_its_turn_came_is_not_taken_later(
    nodes: Nodes, clock: Clock
) -> None:
    visitor, stream = await held(nodes)
    sends = await send_large(nodes, visitor, 3, 4)

    for _ in range(int(DELIVER_TIMEOUT / 0.1) + 1):
        await clock.advance(0.1)
    for send in sends:
        await send.end()
    nodes.engines[0].go_on("subscribe")
    await eventually(lambda: ids_in(stream.frames)[-1:] == [3])
    await turns(20)

    assert [send.status for send in sends] == [503, 503]
    assert ids_in(stream.frames) == [1, 2, 3]
    await quiet(nodes, stream)
