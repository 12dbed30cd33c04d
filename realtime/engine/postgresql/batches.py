"""Batches: while a statement is under way, what comes meanwhile goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from realtime.errors import EngineUnavailable, NoReply

T = TypeVar("T")
R = TypeVar("R")

STOPPED = "the engine has stopped"


class Batches(Generic[T, R]):
    """Writes items in the order in which they come, one batch after the other, on one loop."""

    def __init__(
        self, write: Callable[[list[T]], Awaitable[Sequence[R]]], most: int, pause: float = 0.0
    ) -> None:
        """
        Args:
            write: writes a batch, and returns the result of each item.
            most: items of a batch.
            pause: seconds from one batch to the next.
        """
        self._write = write
        self._most = most
        self._pause = pause
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._writer: asyncio.Task[None] | None = None

    def add(self, item: T) -> asyncio.Future[R]:
        """Write an item soon. Return a future of its result, or of the error of its batch."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, result))
        if self._writer is None:
            self._writer = loop.create_task(self._run())
        return result

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._settle(batch)
                if self._pause:
                    await asyncio.sleep(self._pause)
        finally:
            self._writer = None

    async def _settle(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            values = await self._write([item for item, _ in batch])
            for (_, result), value in zip(batch, values, strict=True):
                if not result.done():  # who waited may have been cancelled
                    result.set_result(value)
        except asyncio.CancelledError:
            _fail((result for _, result in batch), NoReply(STOPPED))
            raise
        except Exception as error:  # also a defect: its callers must not wait on
            _fail((result for _, result in batch), error)

    async def close(self, timeout: float = 0.0) -> None:
        """Write for that time, and then no more: what is left fails."""
        if (writer := self._writer) is not None:
            await asyncio.wait([writer], timeout=timeout)
            writer.cancel()
            await asyncio.wait([writer])
        left, self._waiting = self._waiting, []
        _fail((result for _, result in left), EngineUnavailable(STOPPED))


def _fail(results: Iterable[asyncio.Future[Any]], error: Exception) -> None:
    for result in results:
        if not result.done():
            result.set_exception(error)
            result.exception()  # asyncio logs an exception that nobody retrieves
