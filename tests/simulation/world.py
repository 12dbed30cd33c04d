"""World: virtual time, what happens next, and processes with event loops of their own.

States of a process, and the events that lead to them:

    RUNNING   it takes turns: each runs what is ready on its loop, as asyncio does
    FROZEN    it takes none; what arrives waits, timers become overdue
    DEAD      it never takes a turn again

    RUNNING ── freeze ──► FROZEN ── thaw ──► RUNNING
    RUNNING, FROZEN ── kill ──► DEAD

Invariants:

- One thing happens at a time, in the order of virtual time. Within a process callbacks keep the
  order of asyncio; which process is next is decided by delays, which come from the seed.
- While the world runs, it answers whoever asks for time or chance: `time`, `random`, `uuid`, the
  clock of a loop.
- The world keeps what belongs to a dead process until the end, so no garbage collector runs a
  `finally` of it in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
import uuid
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from heapq import heappop, heappush
from typing import Any
from unittest import mock

from greenlet import greenlet

from tests.simulation.handles import Future, Handle, Task, TimerHandle

EPOCH = 1_700_000_000.0
"""Unix seconds at which each world begins."""

TURN_MAX = 0.000_2
"""Seconds from the moment at which something is ready until the turn of its process, at most."""
UNWINDING_TURNS = 2000
"""Turns in which the tasks of a dead process end."""


class World:
    """See the module."""

    def __init__(self, seed: int, defects: list[str]) -> None:
        """`defects`: gets what no part of a service may do, such as to raise a TypeError."""
        self.random = random.Random(seed)
        self.now = 0.0
        """Seconds since the beginning."""
        self.current: Process | None = None
        """Whose turn it is; None where something outside of all processes happens."""
        self.processes: list[Process] = []
        self.defects = defects
        self.steps = 0
        """Things that have happened."""
        self._events: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._count = itertools.count()

    def at(self, when: float, callback: Callable[..., object], *args: Any) -> None:
        """Call something at a moment."""
        heappush(self._events, (when, next(self._count), callback, args))

    def after(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Call something in a while."""
        heappush(self._events, (self.now + seconds, next(self._count), callback, args))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        queue = self._events
        with self.answering():
            while queue and queue[0][0] <= until:
                self.now, _, callback, args = heappop(queue)
                self.steps += 1
                callback(*args)
        self.now = until

    def unwind(self) -> None:
        """End what is left of all processes."""
        self._events.clear()
        with self.answering():
            for process in self.processes:
                process.unwind()
        self.processes.clear()

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Answer for time and chance within this block."""
        state = random.getstate()
        random.seed(self.random.getrandbits(64))
        chance = random.getrandbits
        with contextlib.ExitStack() as patches:
            for module, name, answer in (
                (time, "time", self.unix_time),
                (time, "time_ns", lambda: int(self.unix_time() * 1e9)),
                (time, "monotonic", self.monotonic),
                (time, "perf_counter", self.monotonic),
                (uuid, "uuid4", lambda: uuid.UUID(int=chance(128), version=4)),
            ):
                patches.enter_context(mock.patch.object(module, name, answer))
            try:
                yield
            finally:
                random.setstate(state)

    def unix_time(self) -> float:
        """Return Unix seconds by the clock of the process whose turn it is."""
        return EPOCH + self.now + (0.0 if self.current is None else self.current.skew)

    def monotonic(self) -> float:
        """Return monotonic seconds of the process whose turn it is."""
        return self.now + (0.0 if self.current is None else self.current.began)


class Process:
    """A process of the simulated service, with an event loop of its own."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.skew = 0.0
        """Seconds by which its wall clock is ahead."""
        self.began = world.random.uniform(1000.0, 9000.0)
        """Its monotonic clock at the beginning of the world."""
        self.alive = True
        self.frozen = False
        self.loop = Loop(self)  # type: ignore[abstract]  # what nobody calls, it does not have
        self.on_death: list[Callable[[], object]] = []
        self.greenlets: list[greenlet] = []
        """Its threads, which do not end before the run does."""
        self._turn_at = math.inf
        self._planned: set[float] = set()
        """The moments for which the world has a turn of it."""
        world.processes.append(self)

    def __repr__(self) -> str:
        return self.name

    def freeze(self) -> None:
        """Take no turn until `thaw`."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on, with everything that has come meanwhile."""
        self.frozen = False
        self.wake()

    def kill(self) -> None:
        """End at once; nothing of it runs any more."""
        self.alive = False
        for callback in self.on_death:
            callback()

    def unwind(self) -> None:
        """Let the tasks of a process that is dead end, as if it had lost its network.

        Called when the run is over and judged: otherwise the garbage collector would end them.
        """
        world, loop = self.world, self.loop
        self.alive, world.current = True, self
        for waiting in self.greenlets:
            while not waiting.dead:  # a `finally` in it may wait, and fail
                with contextlib.suppress(Exception):
                    waiting.throw()
        events._set_running_loop(loop)
        try:
            for _ in range(UNWINDING_TURNS):
                for task in list(loop.tasks):
                    task.cancel()
                if not loop.tasks and not loop.ready:
                    break
                loop.run_once()
                if not loop.ready:
                    loop.hurry()
        finally:
            events._set_running_loop(None)
            self.alive, world.current = False, None
            loop.ready.clear()
            loop._timers.clear()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine on the loop of the process."""
        return self.loop.create_task(coroutine)

    def call(self, callback: Callable[..., object], *args: Any) -> None:
        """Call something in the next turn of the process."""
        self.loop.call_soon(callback, *args)

    def begin_thread(self, work: Callable[[], object]) -> greenlet:
        """Run something as a thread of the process; see `greenlets`."""
        self.greenlets.append(made := greenlet(work))
        self.call(self.resume, made)
        return made

    def resume(self, waiting: greenlet) -> None:
        """Go on with a thread that waits. Called in a turn of the process."""
        events._set_running_loop(None)  # a thread runs no loop
        try:
            waiting.switch()
        finally:
            events._set_running_loop(self.loop)
        if waiting.dead:
            self.greenlets.remove(waiting)

    def wake(self) -> None:
        """Take a turn soon."""
        world = self.world
        self.wake_at(world.now + world.random.random() * TURN_MAX)

    def wake_at(self, when: float) -> None:
        """Take a turn at a moment, or earlier."""
        if when < self._turn_at:
            self._turn_at = when
            if when not in self._planned:
                self._planned.add(when)
                self.world.at(when, self._turn, when)

    def _turn(self, planned: float) -> None:
        self._planned.discard(planned)
        if self._turn_at != planned:
            return  # an earlier turn took its place
        self._turn_at = math.inf
        if not self.alive or self.frozen:
            return
        world, loop = self.world, self.loop
        world.current = self
        events._set_running_loop(loop)
        try:
            loop.run_once()
        finally:
            events._set_running_loop(None)
            world.current = None
        if loop.ready:
            self.wake()
        elif (due := loop.next_due()) is not None:
            self.wake_at(max(world.now, due - self.began))


class Loop(asyncio.AbstractEventLoop):
    """The event loop of one process: the order of asyncio, the time of the world."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.open_connection: Callable[..., Coroutine[Any, Any, tuple[Any, Any]]] | None = None
        """Opens connections; the network puts it here."""
        self.ready: deque[asyncio.Handle] = deque()
        """What runs in the next turn."""
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = itertools.count()
        self.tasks: dict[Task, None] = {}
        """Those that are not done."""

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that were not cancelled."""
        return [handle for _, _, handle in self._timers if not handle.cancelled()]

    def next_due(self) -> float | None:
        """Return when the next timer is due; None without timers."""
        while self._timers and self._timers[0][2].cancelled():
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run_once(self) -> None:
        """Run what is ready now, and the timers that are due."""
        now, ready, timers = self.time(), self.ready, self._timers
        while timers and timers[0][0] <= now + 1e-9:
            handle = heappop(timers)[2]
            if not handle._cancelled:
                ready.append(handle)
        for _ in range(len(ready)):
            next_handle = ready.popleft()
            if not next_handle._cancelled:
                next_handle._run()
            if not self.process.alive:
                return

    def hurry(self) -> None:
        """Make the next timer ready, whenever it is due."""
        while self._timers:
            handle = heappop(self._timers)[2]
            if not handle.cancelled():
                self.ready.append(handle)
                return

    # see asyncio

    def time(self) -> float:
        return self.process.world.now + self.process.began

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = Handle(callback, args, self, context)
        if not self.ready:
            self.process.wake()
        self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._count), handle))
        self.process.wake_at(max(self.process.world.now, when - self.process.began))
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        future = Future(loop=self)
        future.number = next(self._count)
        return future

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        task = Task(coro, loop=self, name=name, context=context)
        self.tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: None, work: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()
        self.process.begin_thread(lambda: future.set_result(work(*args)))
        return future

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)  # type: ignore[call-overload]

    async def create_connection(self, factory: Any, *place: Any, **options: Any) -> tuple[Any, Any]:  # type: ignore[override]
        assert self.open_connection is not None, "the process is not in a network"
        return await self.open_connection(self.process, factory, place)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.process.world.defects.append(f"{self.process}: {context.get('message')}: {context}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self.process.alive

    def is_closed(self) -> bool:
        return not self.process.alive
