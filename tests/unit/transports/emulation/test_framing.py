"""A session under another framing than that of SockJS: lines, with neither open nor heartbeat."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from realtime.node.hooks import NO_HANDSHAKE
from realtime.node.node import Node
from realtime.protocol.frames import Frame
from realtime.transports.emulation.session import (
    INTERRUPTED,
    SESSION_TIMEOUT,
    EmulatedSession,
    Framing,
)
from tests.unit.parts import Clock, eventually
from tests.unit.transports.emulation.parts import CONNECT, HEARTBEAT_DELAY, Reading


def lines(frame: Frame) -> bytes:
    return b"".join(b"- %s\n" % line for line in frame.data.splitlines())


def bye(code: int, reason: str) -> bytes:
    return b"bye %d %s\n" % (code, reason.encode())


@pytest.fixture
def session(node: Node) -> EmulatedSession:
    return open_session(node, lambda: None)


def open_session(node: Node, forget: Callable[[], None]) -> EmulatedSession:
    return EmulatedSession(
        node,
        Framing("lines", b"", b"", lines, bye),
        NO_HANDSHAKE,
        heartbeat_delay=HEARTBEAT_DELAY,
        ended=lambda: None,
        forget=forget,
    )


async def test_nothing_is_written_before_there_is_a_message(session: EmulatedSession) -> None:
    reading = Reading()
    await session.attach(reading)
    assert reading.frames == []
    assert session.ready
    assert session.name == "lines"


async def test_messages_are_written_as_the_framing_says(session: EmulatedSession) -> None:
    reading = Reading()
    await session.attach(reading)
    assert await session.deliver([CONNECT.encode()])
    await eventually(lambda: bool(reading.frames))
    [frame] = reading.frames
    assert frame.startswith('- {"id":1,')


async def test_quiet_stream_gets_no_heartbeat(session: EmulatedSession, clock: Clock) -> None:
    reading = Reading()
    await session.attach(reading)
    await clock.advance(2 * HEARTBEAT_DELAY)
    assert reading.frames == []


async def test_end_of_a_session_is_written_as_the_framing_says(node: Node, clock: Clock) -> None:
    forgotten: list[None] = []
    session = open_session(node, lambda: forgotten.append(None))
    reading = Reading()
    await session.attach(reading)

    session.closed()
    late = Reading()
    await session.attach(late)

    assert reading.frames == late.frames == [bye(*INTERRUPTED).decode()]
    assert reading.finishing
    await clock.advance(SESSION_TIMEOUT)
    assert forgotten == [None]
