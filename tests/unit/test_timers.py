"""Timers: called back once, at the deadline, wherever it was moved to."""

from __future__ import annotations

import asyncio
import gc

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from realtime.timers import Timer, Timers
from tests.unit.parts import Clock, quickly


@pytest.fixture
async def timers(clock: Clock) -> Timers:
    return Timers(asyncio.get_running_loop())


class Calls(list[float]):
    """The times at which a timer called back."""

    def __init__(self, timers: Timers) -> None:
        self.timer = timers.timer(lambda: self.append(timers.now()))


async def test_timer_calls_back_once_at_its_deadline(timers: Timers, clock: Clock) -> None:
    calls = Calls(timers)
    deadline = timers.now() + 10
    calls.timer.set(deadline)
    await clock.advance(9.9)
    assert calls == []
    await clock.advance(0.1)
    assert calls == [deadline]
    await clock.advance(1000)
    assert calls == [deadline]


async def test_timer_can_be_set_again_from_its_callback(timers: Timers, clock: Clock) -> None:
    times: list[float] = []

    def tick() -> None:
        times.append(timers.now())
        timer.set(timers.now() + 10)

    start = timers.now()
    timer = timers.timer(tick)
    timer.set(start + 10)
    for _ in range(3):
        await clock.advance(10)
    assert times == [start + 10, start + 20, start + 30]


async def test_deadline_that_has_passed_calls_back_in_the_next_turn(
    timers: Timers, clock: Clock
) -> None:
    calls = Calls(timers)
    calls.timer.set(timers.now() - 5)
    assert calls == []
    await clock.advance(0)
    assert len(calls) == 1


async def test_timers_call_back_in_the_order_of_their_deadlines(
    timers: Timers, clock: Clock
) -> None:
    order: list[str] = []
    start = timers.now()
    for name, seconds in (("c", 30), ("a", 10), ("b", 20), ("a too", 10)):
        timers.timer(lambda name=name: order.append(name)).set(start + seconds)  # type: ignore[misc]
    await clock.advance(100)
    assert order == ["a", "a too", "b", "c"]


async def test_timer_cancelled_by_one_due_before_it_does_not_call_back(
    timers: Timers, clock: Clock
) -> None:
    calls = Calls(timers)
    first = timers.timer(calls.timer.cancel)
    first.set(timers.now() + 10)
    calls.timer.set(timers.now() + 10)
    await clock.advance(10)
    assert calls == []


async def test_closed_timers_call_back_no_more(timers: Timers, clock: Clock) -> None:
    before, after = Calls(timers), Calls(timers)
    before.timer.set(timers.now() + 10)
    timers.close()
    after.timer.set(timers.now() + 10)
    await clock.advance(20)
    assert [before, after] == [[], []]


Move = tuple[int, str, int]
"""Number of a timer, what happens, and seconds."""

moves = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["set", "set", "set", "clear", "cancel", "wait", "wait"]),
        st.integers(-5, 30),
    )
)


class Table:
    """Timers, and beside them a table of the deadlines that they must keep."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self._called: list[int] = []
        self._timer = [self._make(number) for number in range(3)]
        self._deadlines: dict[int, float | None] = {0: None, 1: None, 2: None}

    def _make(self, number: int) -> Timer:
        return self._timers.timer(lambda: self._called.append(number))

    def set(self, number: int, deadline: float | None) -> None:
        self._timer[number].set(deadline)
        if number in self._deadlines:
            self._deadlines[number] = deadline

    def cancel(self, number: int) -> None:
        self._timer[number].cancel()
        self._deadlines.pop(number, None)

    async def wait(self, seconds: float) -> None:
        """Let time pass; the timers that are due call back, each once."""
        self._called.clear()
        await self._clock.advance(seconds)
        due = [
            number
            for number, deadline in self._deadlines.items()
            if deadline is not None and deadline <= self._clock.now
        ]
        assert sorted(self._called) == due
        self._deadlines.update(dict.fromkeys(due))


@quickly
@given(moves)
async def test_timers_keep_their_deadlines_whatever_the_order_of_moves(
    sequence: list[Move],
) -> None:
    loop = asyncio.get_running_loop()
    clock = Clock(loop)
    timers = Timers(loop)
    table = Table(timers, clock)

    for number, move, seconds in sequence:
        match move:
            case "set":
                table.set(number, clock.now + seconds)
            case "clear":
                table.set(number, None)
            case "cancel":
                table.cancel(number)
            case "wait":
                await table.wait(abs(seconds))
    await table.wait(100)

    timers.close()
    del loop.time


FAR = 7 * 24 * 3600


def timers_kept() -> int:
    """How many timers there are in this process."""
    return sum(type(thing) is Timer for thing in gc.get_objects())


def set_many(timers: Timers, number: int, seconds: float) -> list[Timer]:
    """Timers that are set, one second after another."""
    made = [timers.timer(lambda: None) for _ in range(number)]
    for more, timer in enumerate(made):
        timer.set(timers.now() + seconds + more)
    return made


async def test_cancelled_timers_are_not_kept_until_their_deadline(timers: Timers) -> None:
    gc.collect()
    before = timers_kept()
    many = set_many(timers, 1000, FAR)
    assert timers_kept() == before + 1000
    while many:
        many.pop().cancel()
    assert timers_kept() <= before + 100


async def test_timers_that_are_left_call_back_when_many_others_were_cancelled(
    timers: Timers, clock: Clock
) -> None:
    start = timers.now()
    left = [Calls(timers) for _ in range(3)]
    for calls, seconds in zip(left, (2500, 10, 1200), strict=True):
        calls.timer.set(start + 3000)
        calls.timer.set(start + seconds)
    for timer in set_many(timers, 1000, 1000):
        timer.cancel()
    for _ in range(4):
        await clock.advance(1000)
    assert left == [[start + 3000], [start + 1000], [start + 2000]]


async def test_closed_timers_keep_none(timers: Timers) -> None:
    gc.collect()
    before = timers_kept()
    set_many(timers, 10, FAR)
    timers.close()
    set_many(timers, 10, FAR)
    assert timers_kept() == before


def test_deadlines_in_the_past_are_called_back_on_uvloop() -> None:
    """Its `call_at` gives another kind of handle for them, which does not say when it is due."""

    async def set_two() -> list[str]:
        timers = Timers(asyncio.get_running_loop())
        called: list[str] = []
        done = asyncio.Event()

        def call_second() -> None:
            called.append("second")
            done.set()

        first = timers.timer(lambda: called.append("first"))
        second = timers.timer(call_second)
        first.set(timers.now() - 2)
        second.set(timers.now() - 1)
        await done.wait()
        return called

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(asyncio.wait_for(set_two(), 5)) == ["first", "second"]
