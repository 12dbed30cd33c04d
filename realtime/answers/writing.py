"""`answer` and `aanswer`: the block in which a view, a thread or a worker writes an answer.

with answer(id=answer_id) as a:
    for token in model(prompt):
        a.write(token)
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from realtime.answers import flusher as flushing
from realtime.answers import rows
from realtime.answers.models import Answer, Status, answers, database
from realtime.answers.producer import AnswerFailed, Producer, Stopped

TURN = 0.25
"""Seconds between looks whether the turn of an answer that waits has come."""
TURNS = 1200
"""Looks at most."""


class _Writing:
    def __init__(self, channel: str = "", *, id: Any = None, **options: Any) -> None:  # noqa: A002
        """
        Args:
            channel: begin an answer in this channel, with the `options` of `begin`.
            id: or write the one that `begin` returned.
        """
        self._channel, self._id, self._options = channel, id, options
        self._looks = 0

    def _waits(self) -> bool:
        """Begin the answer, or read its row. Return whether to wait for its turn."""
        is_new = self._id is None
        self._row = rows.begin(self._channel, **self._options) if is_new else self._read()
        self._id = self._row.pk
        self._looks += 1
        return self._row.status == Status.WAITING and self._looks <= TURNS

    def _read(self) -> Answer:
        if (row := rows.fetch(self._id)) is None:
            raise LookupError(f"there is no answer {self._id}")
        return row

    def _begin(self) -> Producer:
        """Make a queued answer a streaming one of this process."""
        flusher = flushing.flusher
        flusher.renew()  # before a row names the process
        queued = answers(pk=self._id, status=Status.QUEUED)
        # a transaction would hold the lock of the row for as long as the model runs
        with transaction.atomic(using=database(), durable=True):
            changed = queued.update(status=Status.STREAMING, producer=flusher.uid)
        if not changed:
            row = self._read()
            kind = Stopped if row.has_ended else LookupError
            raise kind(f"answer {row.pk} is {row.status}")
        self._producer = Producer(self._row)
        flusher.add(self._producer)
        return self._producer

    def _end(self, error: BaseException | None) -> bool:
        """End the answer. Return whether the error stays in the block."""
        failure = error or self._producer.error  # the last words may be lost
        status, reason = Status.COMPLETE, ""
        if isinstance(failure, Stopped):
            status = Status.STOPPED
        elif failure is not None:
            status = Status.FAILED if isinstance(failure, Exception) else Status.INTERRUPTED
            reason = f"{type(failure).__name__}: {failure}"
        flushing.flusher.end(self._producer, status, reason)
        if error is None and isinstance(failure, AnswerFailed):
            raise failure
        return isinstance(error, Stopped)


class answer(_Writing):  # noqa: N801
    """Write an answer; leaving the block ends it.

    The block gets the producer. An exception in it ends the answer as failed, with what it has;
    `Stopped` does not leave the block.

    Raises:
        Stopped: the answer has ended before it began.
        AnswerFailed: the engine was away for a minute, and the text is not whole.
        Busy: another answer is under way.
        LookupError: there is no such answer, or another process writes it.
        RuntimeError: a transaction is under way.
        NotServing: with the memory engine, in a process that serves no clients.
        EngineUnavailable: the engine is away.
    """

    def __enter__(self) -> Producer:
        while self._waits():
            time.sleep(TURN)
        return self._begin()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return self._end(error)


class aanswer(_Writing):  # noqa: N801
    """Write an answer. Async version of `answer`; cancelling the task interrupts the answer."""

    async def __aenter__(self) -> Producer:
        while await sync_to_async(self._waits)():
            await asyncio.sleep(TURN)
        beginning = asyncio.ensure_future(sync_to_async(self._begin)())
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError as error:
            await asyncio.wait((beginning,))  # its thread goes on
            if beginning.exception() is None:
                await self.__aexit__(None, error, None)
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return await asyncio.shield(sync_to_async(self._end)(error))
