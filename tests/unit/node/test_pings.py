"""Pings of the server: when a client gets one, and what becomes of one that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from realtime.node.pings import SLOTS, Pings
from realtime.timers import Timers
from tests.unit.parts import Clock

INTERVAL, TIMEOUT = 25.0, 8.0
TURN = INTERVAL / SLOTS


class Pinged:
    """Keeps when it was pinged, and when it was closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.answers = True
        self.owes = False
        self.pinged: list[float] = []
        self.closed: list[float] = []

    def ping(self) -> None:
        if not self.owes:
            self.pinged.append(self._clock.now)
            self.owes = not self.answers

    def check_pong(self) -> None:
        if self.owes:
            self.closed.append(self._clock.now)


@pytest.fixture
def new_pings(clock: Clock) -> Callable[..., Pings]:
    def new_pings(interval: float = INTERVAL, timeout: float = TIMEOUT) -> Pings:
        return Pings(Timers(asyncio.get_running_loop()), interval, timeout)

    return new_pings


@pytest.fixture
async def pings(new_pings: Callable[..., Pings]) -> Pings:
    return new_pings()


async def pass_time(clock: Clock, seconds: float) -> None:
    """Let time pass in steps that are shorter than a turn."""
    until = clock.now + seconds
    while clock.now < until:
        await clock.advance(TURN / 2)


async def test_first_ping_comes_after_half_an_interval_and_within_a_whole_one(
    clock: Clock, pings: Pings
) -> None:
    clients = [Pinged(clock) for _ in range(300)]
    begin = clock.now
    for client in clients:
        pings.add(client)
    await pass_time(clock, INTERVAL + 2 * TURN)
    first = [client.pinged[0] - begin for client in clients]
    assert min(first) >= INTERVAL / 2
    assert max(first) <= INTERVAL + 2 * TURN
    assert len(set(first)) > SLOTS / 4, "clients of one moment are spread"


async def test_one_ping_follows_in_each_interval(clock: Clock, pings: Pings) -> None:
    client = Pinged(clock)
    pings.add(client)
    await pass_time(clock, 5 * INTERVAL)
    assert len(client.pinged) in (4, 5)
    gaps = [after - before for before, after in zip(client.pinged, client.pinged[1:], strict=False)]
    assert all(INTERVAL <= gap <= INTERVAL * 1.1 for gap in gaps)


async def test_turns_that_come_a_little_late_do_not_add_up(clock: Clock, pings: Pings) -> None:
    client = Pinged(clock)
    pings.add(client)
    for _ in range(8 * SLOTS):
        await clock.advance(TURN * 0.6)  # each second turn comes late
    gaps = [after - before for before, after in zip(client.pinged, client.pinged[1:], strict=False)]
    assert gaps
    assert max(gaps) <= INTERVAL + 2 * TURN


async def test_missing_pong_ends_it_after_the_timeout_and_not_before(
    clock: Clock, pings: Pings
) -> None:
    client = Pinged(clock)
    client.answers = False
    pings.add(client)
    await pass_time(clock, 1.5 * INTERVAL)
    (pinged,) = client.pinged
    assert TIMEOUT <= client.closed[0] - pinged <= TIMEOUT * 1.1


async def test_who_answers_is_left_alone(clock: Clock, pings: Pings) -> None:
    client = Pinged(clock)
    pings.add(client)
    await pass_time(clock, 3 * INTERVAL)
    assert client.closed == []


async def test_pong_that_waited_for_the_process_is_read_before_anyone_is_closed(
    clock: Clock, pings: Pings
) -> None:
    """The process stood still for longer than a pong may take."""
    client = Pinged(clock)
    client.answers = False
    pings.add(client)
    while not client.pinged:
        await clock.advance(TURN / 2)
    await pass_time(clock, TIMEOUT - 2 * TURN)
    await clock.advance(10 * TIMEOUT)
    client.owes = False  # the pong is read now
    await pass_time(clock, TIMEOUT)
    assert client.closed == []


async def test_client_that_was_not_looked_at_gets_no_second_ping_and_is_closed_later(
    clock: Clock, pings: Pings
) -> None:
    client = Pinged(clock)
    client.answers = False
    pings.add(client)
    while not client.pinged:
        await clock.advance(TURN / 2)
    for _ in range(SLOTS):  # every turn comes late
        await clock.advance(TIMEOUT)
    assert client.closed == []
    await pass_time(clock, INTERVAL + TIMEOUT)
    assert len(client.pinged) == 1
    assert client.closed


async def test_client_that_left_gets_nothing(clock: Clock, pings: Pings) -> None:
    client, other = Pinged(clock), Pinged(clock)
    slot = pings.add(client)
    pings.add(other)
    pings.remove(client, slot)
    pings.remove(client, slot)
    await pass_time(clock, 2 * INTERVAL)
    assert client.pinged == []
    assert other.pinged


async def test_wheel_stands_still_without_clients_and_turns_on_with_the_next(
    clock: Clock, pings: Pings
) -> None:
    first, second = Pinged(clock), Pinged(clock)
    pings.remove(first, pings.add(first))
    await pass_time(clock, 3 * INTERVAL)
    pings.add(second)
    await pass_time(clock, INTERVAL + 2 * TURN)
    assert len(second.pinged) == 1


async def test_without_a_timeout_nobody_owes_anything(
    clock: Clock, new_pings: Callable[..., Pings]
) -> None:
    pings = new_pings(timeout=0)
    client = Pinged(clock)
    client.answers = False
    pings.add(client)
    await pass_time(clock, 3 * INTERVAL)
    assert not pings.expects_pongs
    assert client.closed == []


async def test_without_an_interval_there_are_no_pings(new_pings: Callable[..., Pings]) -> None:
    pings = new_pings(interval=0)
    assert (pings.is_on, pings.expects_pongs) == (False, False)
