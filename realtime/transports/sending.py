"""Send without waiting: drive an ASGI server's `send` to its end, or go on without it.

Most servers' `send` never suspends: the bytes are in the socket's buffer when it returns.
Where it does suspend (the peer reads slowly, or the server always does), the rest of it
becomes a task, and the outbox keeps what comes until that is done. So nobody who fans out
to a thousand clients waits for one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any


class Continued:
    """The rest of an awaitable whose first step was made by hand.

    Coroutines can be thrown into and closed; what servers written in other languages
    return may be plain iterators.
    """

    def __init__(self, steps: Iterator[Any], waiting_for: Any) -> None:
        self._steps = steps
        self._waiting_for = waiting_for

    def close(self) -> None:
        """Let go of what is left, also when its task was cancelled before it ran."""
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def __await__(self) -> Generator[Any, Any, None]:
        waiting_for = self._waiting_for
        while True:
            try:
                try:
                    yield waiting_for
                except BaseException as error:
                    throw = getattr(self._steps, "throw", None)
                    if throw is None:
                        raise
                    waiting_for = throw(error)
                else:
                    waiting_for = next(self._steps)
            except StopIteration:
                return


def begin(awaitable: Awaitable[None]) -> Continued | None:
    """Run an awaitable as far as it goes without waiting; returns the rest, None if there is none.

    Raises:
        Exception: whatever it raises on the way.
    """
    steps = awaitable.__await__()
    try:
        waiting_for = next(steps)
    except StopIteration:
        return None
    return Continued(steps, waiting_for)


async def finish(rest: Continued) -> None:
    """Wait for the rest."""
    await rest


def in_task(
    rest: Continued, loop: asyncio.AbstractEventLoop, done: Callable[[asyncio.Task[None]], None]
) -> asyncio.Task[None]:
    """Finish the rest in a task of its own."""

    def finished(task: asyncio.Task[None]) -> None:
        rest.close()
        done(task)

    task = loop.create_task(finish(rest))
    task.add_done_callback(finished)
    return task
