"""Batches: while a statement is under way, what comes meanwhile goes into the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Writes items in the order in which they come, one batch after the other, on one loop."""

    def __init__(self, write: Callable[[list[T]], Awaitable[None]], most: int) -> None:
        """
        Args:
            write: writes a batch, or raises EngineUnavailable.
            most: items of a batch.
        """
        self._write = write
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def put(self, item: T) -> None:
        """Write an item; returns when it is written.

        Raises:
            EngineUnavailable: the batch could not be written, or its reply was lost.
        """
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        if self._writer is None:
            self._writer = asyncio.create_task(self._run())
        await written

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                error: Exception | None = None
                try:
                    await self._write([item for item, _ in batch])
                except asyncio.CancelledError:
                    for _, written in batch:
                        written.cancel()
                    raise
                except Exception as failure:  # also a defect: its callers must not wait on
                    error = failure
                for _, written in batch:
                    if not written.done():  # who waited may have been cancelled
                        written.set_result(None) if error is None else written.set_exception(error)
        finally:
            self._writer = None

    async def close(self) -> None:
        """Write nothing more. Who waits is cancelled."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        for _, written in self._waiting:
            written.cancel()
