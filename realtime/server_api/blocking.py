"""Run coroutines of a blocking member by hand: in a thread without an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Awaitable[T]) -> T:
    """Return the result of work that never waits.

    Raises:
        RuntimeError: it waits for an event loop.
        Exception: the work raised it.
    """

    async def wait() -> T:
        return await work

    coroutine: Coroutine[Any, Any, T] = wait()
    try:
        while True:
            # None is what sleep(0) yields, to give other tasks a turn: there are none
            if coroutine.send(None) is not None:
                raise RuntimeError("a blocking call waits for an event loop")
    except StopIteration as stop:
        value: T = stop.value
        return value
    finally:
        coroutine.close()
