"""Frames that a client sends to a session, and how the session ends."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from realtime.clients.client import Client
from realtime.node.node import Node
from realtime.timers import Timers
from realtime.transports.emulation.session import CLOSE_TIMEOUT, SESSION_TIMEOUT
from tests.unit.parts import Clock, eventually, turns
from tests.unit.suspended_engine import SuspendedEngine
from tests.unit.transports.emulation.parts import (
    CONNECT,
    FORCED,
    INTERRUPTED,
    LARGE,
    OPEN,
    PING,
    Case,
    Reading,
    data_in,
    ids_in,
    open_node,
    publish,
    subscribe_command,
)

# frames of the client


async def test_frames_are_handled_in_their_order_also_over_several_sends(case: Case) -> None:
    reading = await case.attach()
    sends = [case.say(CONNECT), case.say(*(PING % number for number in range(2, 50)))]
    assert await asyncio.gather(*sends, case.say(PING % 50, PING % 51)) == [True] * 3
    await eventually(lambda: ids_in(reading.frames)[-1:] == [51])
    assert ids_in(reading.frames) == [*range(1, 52)]


async def test_bad_frame_closes_the_session_with_its_code_and_advice(case: Case) -> None:
    reading = await case.attach()
    assert await case.say("")
    await eventually(lambda: reading.finishing)
    bad_request = r'c[3003,"{\"reason\":\"bad request\",\"reconnect\":false}"]'
    assert reading.frames == [OPEN, bad_request]
    assert await case.poll() == bad_request
    assert not await case.say(CONNECT)


class Held(NamedTuple):
    """A session with a receiver, whose client waits for its subscription."""

    case: Case
    reading: Reading
    engine: SuspendedEngine

    def go_on(self) -> None:
        self.engine.go_on("subscribe")


@pytest.fixture
async def held(clock: Clock) -> AsyncIterator[Held]:
    engine = SuspendedEngine(Timers(asyncio.get_running_loop()))
    async with open_node(clock, engine) as node:
        case = Case(node)
        held = Held(case, await case.attach(), engine)
        engine.hold("subscribe")
        assert await case.say(CONNECT, subscribe_command("a"))
        await eventually(lambda: "subscribe" in engine.waiting)
        yield held
        if "subscribe" in engine.held:
            held.go_on()


async def test_send_waits_while_many_earlier_bytes_are_unhandled(held: Held) -> None:
    small = PING % 3
    assert await held.case.say(small), "so little may wait"

    large = asyncio.create_task(held.case.say(LARGE % 4))
    await turns(20)
    waited = not large.done()
    held.go_on()
    await eventually(large.done)

    assert waited
    assert await large
    await eventually(lambda: ids_in(held.reading.frames) == [1, 2, 3, 4])


async def test_send_does_not_wait_for_ever_when_the_session_ends(held: Held) -> None:
    large = asyncio.create_task(held.case.say(LARGE % 3))
    await turns(20)
    assert not large.done()
    held.case.session.detach(held.reading, interrupted=True)
    await eventually(large.done)
    assert await held.case.poll() == INTERRUPTED


async def test_sends_that_wait_for_their_turn_are_taken_in_their_order(held: Held) -> None:
    sends = [asyncio.create_task(held.case.say(LARGE % number)) for number in range(3, 8)]
    await turns(20)
    held.go_on()
    await eventually(lambda: all(send.done() for send in sends))
    await eventually(lambda: ids_in(held.reading.frames) == [*range(1, 8)])


async def test_cancelled_sends_do_not_add_up(held: Held) -> None:
    for number in range(3, 8):
        send = asyncio.create_task(held.case.say(LARGE % number))
        await turns(20)
        send.cancel()
    held.go_on()
    assert await held.case.say(PING % 9)
    await eventually(lambda: ids_in(held.reading.frames)[-1:] == [9])
    assert ids_in(held.reading.frames) == [1, 2, 3, 9]


async def test_send_that_is_cancelled_while_it_waits_for_its_turn_was_not_taken(
    held: Held,
) -> None:
    """Frames of one client must not add up in memory, whether it waits for responses or not."""
    first = asyncio.create_task(held.case.say(LARGE % 3))
    for _ in range(10):
        following = asyncio.create_task(held.case.say(LARGE % 4))
        await turns(20)
        following.cancel()

    held.go_on()
    await eventually(first.done)
    assert await held.case.say(PING % 5)

    await eventually(lambda: ids_in(held.reading.frames)[-1:] == [5])
    assert ids_in(held.reading.frames) == [1, 2, 3, 5]


async def test_many_small_frames_leave_other_clients_their_turn(case: Case, node: Node) -> None:
    reading = await case.attach()
    other = Case(node)
    other_reading = await other.attach()
    assert await case.say(CONNECT, *(PING % number for number in range(2, 3000)))
    assert await other.say(CONNECT)
    await eventually(lambda: ids_in(other_reading.frames) == [1])
    assert len(ids_in(reading.frames)) < 1000, "the other one had to wait for all of them"
    await eventually(lambda: len(ids_in(reading.frames)) == 2999)


# the end


async def test_disconnect_is_the_last_frame_after_all_messages(
    subscribed: Case, node: Node
) -> None:
    reading = await subscribed.attach()
    await publish(node, "a", 1)
    [client] = node.hub.clients.values()

    await node.disconnect_user("")
    await eventually(client.is_closing)
    await eventually(lambda: reading.finishing)

    assert data_in(reading.frames) == [1]
    assert reading.frames[-1] == FORCED
    assert [await subscribed.poll(), await subscribed.poll()] == [FORCED, FORCED]


async def test_client_that_reads_too_slowly_is_disconnected(clock: Clock) -> None:
    async with open_node(clock, client_queue_max_size=1000) as node:
        case = Case(node)
        await case.subscribe()
        for _ in range(20):
            await publish(node, "a", "x" * 100)
        assert await case.poll() == r'c[3008,"{\"reason\":\"slow\",\"reconnect\":true}"]'
        await eventually(lambda: not node.hub.clients)


def clients_in_memory() -> int:
    return sum(type(thing) is Client for thing in gc.get_objects())


async def test_client_is_not_kept_by_a_session_that_was_forgotten(node: Node, clock: Clock) -> None:
    gc.collect()
    before = clients_in_memory()
    case = Case(node)
    await case.poll()
    await case.say(CONNECT)
    await eventually(lambda: bool(node.hub.clients))
    session = weakref.ref(case.session)
    assert clients_in_memory() == before + 1
    gc.disable()
    try:
        await clock.advance(SESSION_TIMEOUT)
        await eventually(lambda: not node.hub.clients)
        del case
        await turns(20)

        assert session() is None
        assert clients_in_memory() == before
    finally:
        gc.enable()


async def test_end_of_a_client_waits_a_moment_for_a_request_that_reads_it(
    subscribed: Case, node: Node, clock: Clock
) -> None:
    await node.disconnect_user("")
    await turns()
    await clock.advance(CLOSE_TIMEOUT - 0.1)
    assert len(node.hub.clients) == 1
    await clock.advance(0.2)
    await eventually(lambda: not node.hub.clients)
    assert await subscribed.poll() == FORCED
