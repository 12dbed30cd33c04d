"""`answer` and `aanswer`: the block in which a view, a thread or a worker writes an answer.

with answer(id=answer_id) as a:
    for token in model(prompt):
        a.write(token)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from realtime.answers import flusher as flushing
from realtime.answers import rows
from realtime.answers.models import Answer, Status, answers, database
from realtime.answers.producer import Producer, Stopped

TURN = 0.25
"""Seconds between looks whether the turn of an answer that waits has come."""
TURNS = 1200
"""Looks at most."""


@contextmanager
def answer(
    channel: str = "",
    *,
    id: Any = None,  # noqa: A002
    **options: Any,
) -> Iterator[Producer]:
    """Write an answer; leaving the block ends it.

    Args:
        channel: begin an answer in this channel, with the `options` of `begin`.
        id: or write the one that `begin` returned.

    Yields:
        The producer. An exception in the block ends the answer as failed, with what it has;
        `Stopped` does not leave the block.

    Raises:
        Stopped: the answer has ended before it began.
        Busy: another answer is under way.
        LookupError: there is no such answer, or another process writes it.
        RuntimeError: a transaction is under way.
        NotServing: with the memory engine, in a process that serves no clients.
        EngineUnavailable: the engine is away.
    """
    row = _row(channel, id, options)
    for _ in range(TURNS):
        if row.status == Status.WAITING:
            time.sleep(TURN)
            row = _row("", row.pk, {})
    with _Writing(row) as producer:
        yield producer


@asynccontextmanager
async def aanswer(
    channel: str = "",
    *,
    id: Any = None,  # noqa: A002
    **options: Any,
) -> AsyncIterator[Producer]:
    """Write an answer. Async version of `answer`; cancelling the task interrupts the answer."""
    row = await sync_to_async(_row)(channel, id, options)
    for _ in range(TURNS):
        if row.status == Status.WAITING:
            await asyncio.sleep(TURN)
            row = await sync_to_async(_row)("", row.pk, {})
    async with _Writing(row) as producer:
        yield producer


def _row(channel: str, answer_id: Any, options: dict[str, Any]) -> Answer:
    """Begin an answer, or return the one with this ID."""
    row = rows.begin(channel, **options) if answer_id is None else rows.fetch(answer_id)
    if row is None:
        raise LookupError(f"there is no answer {answer_id}")
    return row


class _Writing:
    """The block."""

    def __init__(self, row: Answer) -> None:
        self._row = row

    def __enter__(self) -> Producer:
        """Make a queued answer a streaming one of this process."""
        flusher, row = flushing.flusher, self._row
        flusher.renew()  # before a row names the process
        queued = answers(pk=row.pk, status=Status.QUEUED)
        # a transaction would hold the lock of the row for as long as the model runs
        with transaction.atomic(using=database(), durable=True):
            changed = queued.update(status=Status.STREAMING, producer=flusher.uid)
        if not changed:
            row = _row("", row.pk, {})
            kind = Stopped if row.has_ended else LookupError
            raise kind(f"answer {row.pk} is {row.status}")
        self._producer = Producer(row)
        flusher.add(self._producer)
        return self._producer

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """End the answer."""
        status, reason = Status.COMPLETE, ""
        if isinstance(error, Stopped):
            status = Status.STOPPED
        elif error is not None:
            status = Status.FAILED if isinstance(error, Exception) else Status.INTERRUPTED
            reason = f"{type(error).__name__}: {error}"
        flushing.flusher.end(self._producer, status, reason)
        return isinstance(error, Stopped)

    async def __aenter__(self) -> Producer:
        entering = asyncio.ensure_future(sync_to_async(self.__enter__)())
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError as error:
            await asyncio.wait((entering,))  # its thread goes on
            if entering.exception() is None:
                await self.__aexit__(type(error), error, None)
            raise

    async def __aexit__(self, *raised: Any) -> bool:
        return await asyncio.shield(sync_to_async(self.__exit__)(*raised))
