"""A session: receivers that come and go, waiting messages, timeouts, heartbeats, the end."""

from __future__ import annotations

import asyncio
from typing import Any

from realtime.node.hooks import NO_HANDSHAKE
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.transports.emulation.session import (
    SESSION_TIMEOUT,
    EmulatedSession,
    Framing,
)
from tests.unit.parts import Clock, eventually, turns
from tests.unit.transports.emulation.parts import (
    ABANDONED,
    BUSY,
    CONNECT,
    HEARTBEAT,
    HEARTBEAT_DELAY,
    INTERRUPTED,
    OPEN,
    Case,
    Reading,
    data_in,
    open_node,
    publish,
)

# receivers


async def test_messages_wait_for_the_next_receiver(subscribed: Case, node: Node) -> None:
    for value in range(3):
        await publish(node, "a", value)
        await turns()
    reading = await subscribed.attach()
    await eventually(lambda: bool(reading.frames))
    assert len(reading.frames) == 1
    assert data_in(reading.frames) == [0, 1, 2]


async def test_each_polling_receiver_gets_one_frame_and_nothing_is_lost(
    subscribed: Case, node: Node
) -> None:
    received: list[Any] = []
    for value in range(20):
        await publish(node, "a", value)
        if value % 3 == 0:
            received += data_in([await subscribed.poll()])
    received += data_in([await subscribed.poll()])
    assert received == [*range(20)]


async def test_messages_after_a_receiver_is_full_go_to_the_next_one(
    subscribed: Case, node: Node
) -> None:
    full = await subscribed.attach(limit=1)
    await publish(node, "a", 1)
    await eventually(lambda: full.finishing)
    await publish(node, "a", 2)
    await turns()

    # the full one is still on its way
    following = await subscribed.attach()
    await eventually(lambda: bool(following.frames))

    assert (data_in(full.frames), data_in(following.frames)) == ([1], [2])


async def test_second_receiver_is_refused_and_the_first_one_goes_on(
    subscribed: Case, node: Node
) -> None:
    first = await subscribed.attach()
    second = await subscribed.attach()
    subscribed.session.detach(second, interrupted=True)
    await publish(node, "a", 1)
    await eventually(lambda: bool(first.frames))
    assert (second.frames, second.finishing) == ([BUSY], True)
    assert data_in(first.frames) == [1]


async def test_receiver_that_is_gone_ends_the_session_when_the_next_one_comes(
    case: Case,
) -> None:
    lost = await case.attach()
    lost.there = False
    following = await case.attach()
    assert (following.frames, following.finishing) == ([INTERRUPTED], True)
    assert lost.frames == [OPEN]


async def test_receiver_that_broke_off_ends_the_session_and_the_next_one_gets_interrupted(
    case: Case,
) -> None:
    broken = await case.attach()
    case.session.detach(broken, interrupted=True)
    assert [await case.poll(), await case.poll()] == [INTERRUPTED, INTERRUPTED]
    assert not await case.say(CONNECT)


async def test_full_receiver_that_broke_off_ends_the_session_of_the_one_that_followed(
    subscribed: Case, node: Node
) -> None:
    full = await subscribed.attach(limit=1)
    await publish(node, "a", 1)
    await eventually(lambda: full.finishing)
    following = await subscribed.attach()
    subscribed.session.detach(full, interrupted=True)
    assert (following.frames, following.finishing) == ([INTERRUPTED], True)


async def test_receiver_that_ended_while_it_waited_for_another_one_is_not_attached(
    case: Case, clock: Clock
) -> None:
    present, following = SlowReading(), Reading()
    await case.session.attach(present)
    attaching = asyncio.create_task(case.session.attach(following))
    await eventually(lambda: present.is_asked)

    case.session.detach(present, interrupted=False)
    following.finish()
    present.answer.set_result(False)
    await attaching

    await clock.advance(SESSION_TIMEOUT)
    assert await case.poll() == ABANDONED
    assert following.frames == []


class SlowReading(Reading):
    """A receiver that answers when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = False
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def is_there(self) -> bool:
        self.is_asked = True
        return await self.answer


# timeouts


async def test_session_without_a_receiver_ends_after_five_seconds(
    subscribed: Case, node: Node, clock: Clock
) -> None:
    await clock.advance(SESSION_TIMEOUT - 0.1)
    assert (subscribed.ends, len(node.hub.clients)) == (0, 1)
    await clock.advance(0.2)
    await eventually(lambda: not node.hub.clients)
    assert SESSION_TIMEOUT == 5
    assert subscribed.ends == 1
    assert await subscribed.poll() == ABANDONED


async def test_timeout_begins_again_after_each_receiver(case: Case, clock: Clock) -> None:
    for _ in range(4):
        reading = await case.attach()
        case.session.detach(reading, interrupted=False)
        await clock.advance(SESSION_TIMEOUT - 1)
    assert case.ends == 0


async def test_ended_session_is_remembered_for_five_seconds_and_then_forgotten_once(
    case: Case, clock: Clock
) -> None:
    case.session.detach(await case.attach(), interrupted=True)
    await clock.advance(SESSION_TIMEOUT - 0.1)
    assert (case.ends, await case.poll()) == (0, INTERRUPTED)
    await clock.advance(0.2)
    assert case.ends == 1
    await clock.advance(10 * SESSION_TIMEOUT)
    assert case.ends == 1


# heartbeats


async def test_silent_receiver_gets_a_heartbeat_again_and_again(case: Case, clock: Clock) -> None:
    reading = await case.attach()
    for beats in range(4):
        assert reading.frames == [OPEN, *[HEARTBEAT] * beats]
        await clock.advance(HEARTBEAT_DELAY - 1)
        assert reading.frames == [OPEN, *[HEARTBEAT] * beats]
        await clock.advance(1)


async def test_heartbeat_is_the_frame_of_a_polling_receiver(case: Case, clock: Clock) -> None:
    await case.poll()
    reading = await case.attach(0)
    await clock.advance(HEARTBEAT_DELAY)
    assert (reading.frames, reading.finishing) == ([HEARTBEAT], True)


async def test_frame_puts_the_heartbeat_off(subscribed: Case, node: Node, clock: Clock) -> None:
    reading = await subscribed.attach()
    for value in range(3):
        await clock.advance(HEARTBEAT_DELAY - 1)
        await publish(node, "a", value)
        await turns()
    assert HEARTBEAT not in reading.frames
    await clock.advance(HEARTBEAT_DELAY)
    assert reading.frames[-1] == HEARTBEAT


async def test_next_receiver_gets_its_heartbeat_as_late_as_the_first(
    case: Case, clock: Clock
) -> None:
    first = await case.attach()
    await clock.advance(HEARTBEAT_DELAY - 1)
    case.session.detach(first, interrupted=False)
    second = await case.attach()
    await clock.advance(HEARTBEAT_DELAY - 1)
    assert second.frames == []
    await clock.advance(1)
    assert (first.frames, second.frames) == ([OPEN], [HEARTBEAT])


async def test_no_heartbeat_goes_to_a_session_that_ended(case: Case, clock: Clock) -> None:
    reading = await case.attach()
    await case.say("")
    await eventually(lambda: reading.finishing)
    await clock.advance(HEARTBEAT_DELAY)
    assert HEARTBEAT not in reading.frames


async def test_heartbeats_can_be_turned_off(clock: Clock) -> None:
    async with open_node(clock, sockjs_heartbeat_delay=0) as node:
        reading = await Case(node).attach()
        await clock.advance(1000)
        assert reading.frames == [OPEN]


# another framing: lines, with neither open nor heartbeat


def lines(frame: Frame) -> bytes:
    return b"".join(b"- %s\n" % line for line in frame.data.splitlines())


def bye(code: int, reason: str) -> bytes:
    return b"bye %d %s\n" % (code, reason.encode())


async def test_session_writes_what_its_framing_says_and_nothing_else(
    node: Node, clock: Clock
) -> None:
    forgotten: list[None] = []
    session = EmulatedSession(
        node,
        Framing("lines", b"", b"", lines, bye),
        NO_HANDSHAKE,
        ended=lambda: None,
        forget=lambda: forgotten.append(None),
    )
    reading, late = Reading(), Reading()
    await session.attach(reading)
    await clock.advance(2 * HEARTBEAT_DELAY)
    assert (session.name, session.ready, reading.frames) == ("lines", True, [])

    assert await session.deliver([CONNECT.encode()])
    await eventually(lambda: bool(reading.frames))
    assert reading.frames[0].startswith('- {"id":1,')

    session.closed()
    await session.attach(late)
    assert reading.frames[1:] == late.frames == [bye(1002, "Connection interrupted").decode()]
    assert reading.finishing
    await clock.advance(SESSION_TIMEOUT)
    assert forgotten == [None]
