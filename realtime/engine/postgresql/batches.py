"""Batches: while a statement is under way, what comes meanwhile goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def settle(result: asyncio.Future[T], value: T) -> None:
    """Give a result to a caller, unless that has gone."""
    if not result.done():
        result.set_result(value)


class Batches(Generic[T]):
    """Writes items in the order in which they come, one batch after the other, on one loop."""

    def __init__(self, write: Callable[[list[T]], Awaitable[None]], most: int) -> None:
        """
        Args:
            write: writes a batch, and tells those who wait for its items. It raises nothing but
                CancelledError.
            most: items of a batch.
        """
        self._write = write
        self._most = most
        self._waiting: list[T] = []
        self._writer: asyncio.Task[None] | None = None

    def add(self, item: T) -> None:
        """Write an item soon."""
        self._waiting.append(item)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._write(batch)
        finally:
            self._writer = None

    async def close(self, timeout: float = 0.0) -> list[T]:
        """Write for that time, and then no more. Return the items that no batch had taken."""
        if (writer := self._writer) is not None:
            await asyncio.wait([writer], timeout=timeout)
            writer.cancel()
            await asyncio.wait([writer])
        left, self._waiting = self._waiting, []
        return left
