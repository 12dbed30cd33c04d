"""Greenlets: code of threads, which the world stops where it would block, and goes on with later.

A greenlet belongs to the process in whose turn it runs. It waits by `wait` and `suspend`; it goes
on in a later turn of the process. A process that is frozen does not go on with it, and one that is
dead never does: the process keeps the greenlet until the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import getcurrent

from tests.simulation.world import Process, World


def wait(process: Process, seconds: float | None) -> Callable[[], None]:
    """Return what ends the wait of the greenlet that runs now; then call `suspend`."""
    waiting, is_over = getcurrent(), False

    def wake() -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            process.call(process.resume, waiting)

    if seconds is not None:
        process.loop.call_later(seconds, wake)
    return wake


def suspend() -> None:
    """Let the world go on until the wait of this greenlet is over."""
    parent = getcurrent().parent
    assert parent is not None
    parent.switch()


def sleep(process: Process, seconds: float) -> None:
    """Take the place of `time.sleep` in a greenlet."""
    wait(process, seconds)
    suspend()


def current(world: World) -> Process:
    """Return the process of the greenlet that runs."""
    process: Any = world.current
    assert isinstance(process, Process)
    return process
