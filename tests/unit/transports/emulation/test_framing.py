"""A session under another framing than that of SockJS: lines, with neither open nor heartbeat."""

from __future__ import annotations

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


async def test_session_writes_what_its_framing_says_and_nothing_else(
    node: Node, clock: Clock
) -> None:
    forgotten: list[None] = []
    session = EmulatedSession(
        node,
        Framing("lines", b"", b"", lines, bye),
        NO_HANDSHAKE,
        heartbeat_delay=HEARTBEAT_DELAY,
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
    assert reading.frames[1:] == late.frames == [bye(*INTERRUPTED).decode()]
    assert reading.finishing
    await clock.advance(SESSION_TIMEOUT)
    assert forgotten == [None]
