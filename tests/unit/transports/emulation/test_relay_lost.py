"""Relay messages that are lost, nodes that die, and nodes that stop."""

from __future__ import annotations

import asyncio

import pytest

from realtime.node.node import SHUTDOWN_TIMEOUT
from realtime.transports.emulation import relay_messages
from realtime.transports.emulation.relay_messages import UNWATCHED_TIMEOUT, WATCH_INTERVAL
from realtime.transports.emulation.session import SESSION_TIMEOUT
from tests.unit.node.node_parts import stop
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.emulation.nodes import Nodes, attached, quiet, stream
from tests.unit.transports.emulation.parts import (
    HEARTBEAT,
    INTERRUPTED,
    SHUTDOWN,
    data_in,
    publish,
)

# messages that are lost, or come twice or late


@pytest.mark.parametrize("times", [0, 2], ids=["lost", "doubled"])
async def test_stream_is_interrupted_when_a_written_message_is_lost_or_doubled(
    nodes: Nodes, times: int
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = await stream(nodes, visitor)
    await publish(one, "a", 1)
    await eventually(lambda: data_in(request.frames) == [1])

    nodes.engines[0].broker.lose(relay_messages.WrittenFrames, times=times)
    await publish(one, "a", 2)
    await turns(20)
    nodes.engines[0].broker.lose_nothing()
    await publish(one, "a", 3)

    frames = await request.end()
    assert frames[-1] == INTERRUPTED
    assert data_in(frames) == ([1] if times == 0 else [1, 2])
    # the owner learns it, too
    await eventually(lambda: not one._connections)
    assert await visitor.poll(other) == INTERRUPTED


async def test_message_that_comes_after_a_later_one_is_ignored(nodes: Nodes) -> None:
    one, _ = nodes.nodes
    request = await stream(nodes, await nodes.subscriber(one))
    engine = nodes.engines[0]
    engine.broker.lose(relay_messages.WrittenFrames)
    await publish(one, "a", 1)
    await eventually(lambda: bool(engine.broker.withheld))
    engine.broker.lose_nothing()
    await publish(one, "a", 2)
    await eventually(request.serving.done)

    await engine.broker.let_arrive()
    await turns(20)

    assert await request.end() == [INTERRUPTED]


async def test_no_frame_follows_the_one_that_says_interrupted(nodes: Nodes) -> None:
    _, other = nodes.nodes
    request = await stream(nodes, await nodes.begun())
    relay = nodes.application._sessions.of(other)._relay
    (number,) = relay.attached
    for each in (1, 0):  # one is missing, and comes late
        message = relay_messages.WrittenFrames(number, each, [HEARTBEAT], False)
        relay.on_written(message)
    assert await request.end() == [INTERRUPTED]


async def test_stream_whose_last_messages_are_lost_is_interrupted_at_the_next_watch(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = await stream(nodes, visitor)
    nodes.engines[0].broker.lose(relay_messages.WrittenFrames)
    await one.disconnect_user("")
    await eventually(lambda: not one._connections)
    assert not request.serving.done()

    await clock.advance(WATCH_INTERVAL)

    assert await request.end() == [INTERRUPTED]


async def test_receiver_whose_detach_was_lost_is_found_gone_when_the_next_one_comes(
    nodes: Nodes,
) -> None:
    _, other = nodes.nodes
    visitor = await nodes.begun()
    request = await stream(nodes, visitor)
    nodes.engines[1].broker.lose(relay_messages.Detach)
    await request.quit()
    await turns(20)
    assert await visitor.poll(other) == INTERRUPTED


async def test_receiver_whose_detach_was_lost_ends_when_it_is_not_watched(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    visitor = await nodes.begun()
    request = await stream(nodes, visitor)
    nodes.engines[1].broker.lose(relay_messages.Detach)
    await request.quit()

    await clock.advance(UNWATCHED_TIMEOUT - 0.1)
    assert len(one._connections) == 1
    await clock.advance(0.2)

    await eventually(lambda: not one._connections)
    assert await visitor.poll(one) == INTERRUPTED
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: not nodes.cluster.claims)


# watching


async def test_stream_of_a_live_session_is_watched_and_goes_on(nodes: Nodes, clock: Clock) -> None:
    one, _ = nodes.nodes
    request = await stream(nodes, await nodes.subscriber(one))

    for number in range(1, 20):
        await clock.advance(WATCH_INTERVAL)
        await turns(20)
        assert nodes.engines[1].broker.count(relay_messages.WatchReceiver) == number

    await publish(one, "a", 1)
    await eventually(lambda: 1 in data_in(request.frames))
    await quiet(nodes, request)


async def test_response_that_ended_is_not_watched(nodes: Nodes, clock: Clock) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    await publish(one, "a", 1)
    await visitor.poll(other)
    await clock.advance(2 * WATCH_INTERVAL)
    await turns(20)
    assert nodes.engines[1].broker.count(relay_messages.WatchReceiver) == 0


async def test_stream_is_interrupted_within_seven_seconds_when_the_owner_dies(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    request = await stream(nodes, await nodes.subscriber(one))
    await clock.advance(WATCH_INTERVAL)
    await turns(20)
    await nodes.die(one)

    for _ in range(70):
        await clock.advance(0.1)

    assert await request.end() == [INTERRUPTED]
    assert request.ended


@pytest.mark.parametrize("where", [0, 2], ids=["at the owner", "at a third node"])
async def test_next_request_is_answered_when_the_relay_node_has_died(
    three: Nodes, clock: Clock, where: int
) -> None:
    one, relay, _ = three.nodes
    visitor = await three.subscriber(one)
    request = visitor.receive(relay)
    await turns(40)
    await three.die(relay)

    following = visitor.receive(three.nodes[where])
    for _ in range(15):
        await turns(20)
        await clock.advance(0.1)

    assert await following.end() == [INTERRUPTED]
    await eventually(lambda: not one._connections)
    await quiet(three, request)


# nodes that stop


async def test_stream_at_the_relay_node_ends_with_shutdown_when_the_owner_stops(
    nodes: Nodes, clock: Clock
) -> None:
    one, _ = nodes.nodes
    request = await stream(nodes, await nodes.subscriber(one))
    await stop(one, clock, SHUTDOWN_TIMEOUT)
    assert await request.end() == [SHUTDOWN]
    assert request.ended


@pytest.mark.parametrize(("transport", "last"), [("xhr", [HEARTBEAT]), ("xhr_streaming", [])])
async def test_response_of_a_node_that_stops_ends_in_order_and_the_session_goes_on(
    nodes: Nodes, clock: Clock, transport: str, last: list[str]
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    request = visitor.receive(other, transport)
    await attached(nodes)

    await stop(other, clock, SHUTDOWN_TIMEOUT)

    assert await request.end() == last
    assert request.ended
    await publish(one, "a", 1)
    assert data_in([await visitor.poll(one)]) == [1]


async def test_nothing_is_lost_when_responses_end_because_their_node_stops(
    three: Nodes, clock: Clock
) -> None:
    one, relay, third = three.nodes
    visitor = await three.subscriber(one)
    request = visitor.receive(relay)
    await turns(40)

    for value in range(50):
        await publish(one, "a", value)
        if value == 25:
            relay.begin_stop()
    received = data_in(await request.end())
    for value in range(50, 60):
        await publish(one, "a", value)
    received += data_in([await visitor.poll(third)])

    assert received == [*range(60)]


@pytest.mark.parametrize("transport", ["xhr", "xhr_streaming"])
async def test_publication_while_the_end_of_a_response_is_on_its_way_goes_to_the_next_one(
    three: Nodes, transport: str
) -> None:
    one, relay, third = three.nodes
    visitor = await three.subscriber(one)
    request = visitor.receive(relay, transport)
    await attached(three)

    three.engines[0].hold("publish")
    relay.begin_stop()
    await three.engines[0].reached("publish")
    await publish(third, "a", 1)
    await turns()
    three.engines[0].go_on("publish")

    received = data_in(await request.end())
    assert [*received, *data_in([await visitor.poll(third)])] == [1]


async def test_request_at_a_stopping_node_ends_in_order(
    nodes: Nodes,
) -> None:
    one, other = nodes.nodes
    visitor = await nodes.subscriber(one)
    other.begin_stop()

    assert await visitor.poll(other) == HEARTBEAT
    request = visitor.receive(other)
    assert await request.end() == []
    assert request.ended
    await publish(one, "a", 1)
    assert data_in([await visitor.poll(one)]) == [1]


async def test_nothing_is_left_of_requests_that_ended(nodes: Nodes, clock: Clock) -> None:
    one, other = nodes.nodes
    tasks = asyncio.all_tasks()
    for number in range(20):
        visitor = nodes.visitor()
        await visitor.poll(one)
        request = visitor.receive(other, ("xhr", "xhr_streaming")[number % 2])
        await turns(number)
        await request.quit()

    await clock.advance(UNWATCHED_TIMEOUT)
    await clock.advance(SESSION_TIMEOUT)
    await eventually(lambda: not nodes.cluster.claims)

    await eventually(lambda: asyncio.all_tasks() <= tasks)  # what a start begins may have ended
    assert not one._connections
    assert not other._connections
    for sessions in map(nodes.application._sessions.of, nodes.nodes):
        claims = sessions._claims
        receivers, responses = sessions._receivers._receivers, sessions._relay.attached
        assert (sessions._sessions, receivers, responses, claims._renewals) == ({}, {}, {}, {})
        assert len(claims._locks) == 0
