"""Background tasks of a node: they run beside its clients, and its end waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any

from realtime.errors import EngineUnavailable

logger = logging.getLogger("realtime.node")


class Background:
    """The background tasks of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.tasks: set[asyncio.Task[Any]] = set()
        """Those that have not ended."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background. An exception is logged."""
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Background task failed", exc_info=error)

    def cancel(self) -> None:
        """Cancel the tasks that run."""
        for task in self.tasks:
            task.cancel()

    async def idle(self) -> None:
        """Wait until no background task is left."""
        while self.tasks:
            await asyncio.wait(self.tasks)


async def failure_of(ending: Awaitable[None], deadline: float) -> str | None:
    """Wait for the end of a part until the deadline. Return what went wrong, or None."""
    try:
        async with asyncio.timeout_at(deadline):
            await ending
    except TimeoutError:
        return "the engine did not answer before this process had to end"
    except EngineUnavailable as error:
        return str(error)
    return None
