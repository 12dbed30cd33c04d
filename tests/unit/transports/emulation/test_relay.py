"""Requests at a relay node: frames in both directions, and how either side ends."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest

from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import (
    ANSWER_TIMEOUT,
    DELIVER_TIMEOUT,
    WATCH_INTERVAL,
)
from realtime.transports.emulation.session import SESSION_TIMEOUT
from tests.unit.cluster.direct_parts import levels
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.emulation.nodes import Nodes, attached, quiet, stream
from tests.unit.transports.emulation.parts import (
    BUSY,
    CONNECT,
    FORCED,
    HEARTBEAT,
    HEARTBEAT_DELAY,
    INTERRUPTED,
    LARGE,
    OPEN,
    STREAMING_BYTES,
    Request,
    Visitor,
    data_in,
    ids_in,
    publish,
    subscribe_command,
)

# as at the owner


async def test_polls_at_alternating_nodes_receive_everything_in_order(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    visitor = await nodes.subscriber(one)
    received: list[Any] = []

    for value in range(60):
        await publish(one, "a", value)
        if value % 3 == 0:
            received += data_in([await visitor.poll(nodes.nodes[value % 2])])
    received += data_in([await visitor.poll(nodes.nodes[1])])

    assert received == [*range(60)]


@pytest.mark.parametrize("transport", ["xhr_streaming", "eventsource", "htmlfile"])
async def test_full_streams_follow_one_another_without_loss(nodes: Nodes, transport: str) -> None:
    """Both nodes agree on the last frame, however a format wraps frames."""
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = visitor.receive(other, transport)
    responses = [request]
    values = [f"{number}<\u2028>{'x' * 500}" for number in range(800)]

    for value in values:
        await publish(one, "a", value)
        await turns(3)
        if request.serving.done():
            request = visitor.receive(other, transport)
            responses.append(request)
    await eventually(lambda: data_in(request.frames)[-1:] == values[-1:] or request.serving.done())

    assert len(responses) >= 800 * 500 // STREAMING_BYTES
    assert [value for one in responses for value in data_in(one.frames)] == values
    await quiet(nodes, request)


async def test_heartbeat_reaches_the_other_node(nodes: Nodes, clock: Clock) -> None:
    visitor = await nodes.begun()
    request = await stream(nodes, visitor)
    for _ in range(int(HEARTBEAT_DELAY / WATCH_INTERVAL) + 1):
        await clock.advance(WATCH_INTERVAL)
        await turns(20)
    await request.has(HEARTBEAT)
    await quiet(nodes, request)


async def test_close_frame_reaches_the_other_node_and_is_repeated_there(nodes: Nodes) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = await stream(nodes, visitor)
    await one.disconnect_user("")
    assert await request.end() == [FORCED]
    assert request.ended
    assert [await visitor.poll(other), await visitor.poll(one)] == [FORCED, FORCED]
    assert await visitor.say(other, CONNECT) == 404


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (1, 1), (1, 2)])
async def test_second_receiver_is_refused_at_either_node(
    three: Nodes, first: int, second: int
) -> None:
    one = three.nodes[0]
    visitor = await three.subscriber(one)
    request = visitor.receive(three.nodes[first])
    await turns(40)
    assert await visitor.poll(three.nodes[second]) == BUSY
    await publish(one, "a", 1)
    await eventually(lambda: data_in(request.frames) == [1])
    await quiet(three, request)


@pytest.mark.parametrize("transport", ["xhr", "xhr_streaming"])
async def test_receiver_that_breaks_off_at_the_other_node_ends_the_session(
    nodes: Nodes, transport: str
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    request = visitor.receive(other, transport)
    await attached(nodes)

    await request.quit()
    await eventually(lambda: not one._connections)

    assert [await visitor.poll(node) for node in nodes.nodes] == [INTERRUPTED] * 2


async def test_receiver_that_breaks_off_before_its_frame_arrives_ends_the_session(
    nodes: Nodes,
) -> None:
    """The owner has written a frame, and the client has not read it."""
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = visitor.receive(other, "xhr")
    await attached(nodes)
    nodes.engines[0].broker.lose(relay_messages.WrittenFrames)
    await publish(one, "a", 1)
    await eventually(lambda: bool(nodes.engines[0].broker.withheld))

    await request.quit()
    await eventually(lambda: not one._connections)

    nodes.engines[0].broker.lose_nothing()
    assert await visitor.poll(other) == INTERRUPTED


async def test_request_that_is_cancelled_while_it_is_attached_ends_the_session(
    nodes: Nodes,
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.begun()
    nodes.engines[0].broker.lose_assent()
    request = visitor.receive(other)
    await eventually(lambda: bool(nodes.engines[0].broker.withheld))

    request.serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request.serving

    await eventually(lambda: not one._connections)
    assert not other._connections


async def test_two_sends_at_once_at_two_nodes_are_both_taken(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = await stream(nodes, visitor)

    pings = [json.dumps({"id": number, "method": 7}) for number in (11, 12)]
    sends = [visitor.send(node, ping) for node, ping in zip(nodes.nodes, pings, strict=True)]
    for send in sends:
        await send.end()

    assert [send.status for send in sends] == [204, 204]
    await eventually(lambda: all(f'\\"id\\":{n}' in "".join(request.frames) for n in (11, 12)))
    await quiet(nodes, request)


async def test_send_to_a_session_that_ended_is_denied_at_the_other_node(
    nodes: Nodes, clock: Clock
) -> None:
    _, other = nodes.nodes
    visitor = await nodes.begun()
    await clock.advance(SESSION_TIMEOUT)
    assert await visitor.say(other, CONNECT) == 404
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: not nodes.cluster.claims)
    assert await visitor.say(other, CONNECT) == 404


ODD = ["", "ä漢🎉", "\u2028\u2029\ufeff\uffff\x7f", "\\u0000\"'</script>", " a\nb\t"]


@pytest.mark.parametrize("text", ODD, ids=ascii)
async def test_any_text_travels_both_ways(nodes: Nodes, text: str) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    command = json.dumps(
        {"id": 5, "method": 9, "params": {"method": text, "data": text}}, ensure_ascii=False
    )

    assert await visitor.say(other, command) == 204
    assert '\\"id\\":5' in await visitor.poll(other)
    await publish(one, "a", text)

    assert data_in([await visitor.poll(other)]) == [text]


async def test_large_frames_travel_both_ways(nodes: Nodes) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    text = "x" * 2**20
    await publish(one, "a", text)

    assert data_in(await (await stream(nodes, visitor)).end()) == [text]

    pings = [json.dumps({"id": number, "method": 7}) for number in range(10, 10_000)]
    assert await visitor.say(other, "\n".join(pings)) == 204
    request = await stream(nodes, visitor)
    await eventually(lambda: '\\"id\\":9999' in request.frames[-1])
    await quiet(nodes, request)


# what clients send: owners that are busy, or have died


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
