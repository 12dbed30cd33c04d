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
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from realtime.answers import flusher as flushing
from realtime.answers import rows
from realtime.answers.models import Answer, Status, database
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
    row = rows.begin(channel, **options) if id is None else _find(id)
    for _ in range(TURNS):
        if row.status != Status.WAITING:
            break
        time.sleep(TURN)
        row.refresh_from_db(using=database())
    producer = _start(row)
    try:
        yield producer
    except Stopped:
        _end(producer, Status.STOPPED)
    except BaseException as error:
        _end(producer, _status_after(error), _reason_of(error))
        raise
    else:
        _end(producer, Status.COMPLETE)


@asynccontextmanager
async def aanswer(
    channel: str = "",
    *,
    id: Any = None,  # noqa: A002
    **options: Any,
) -> AsyncIterator[Producer]:
    """Write an answer. Async version of `answer`; cancelling the task interrupts the answer."""
    if id is None:
        row = await sync_to_async(rows.begin)(channel, **options)
    else:
        row = await sync_to_async(_find)(id)
        for _ in range(TURNS):
            if row.status != Status.WAITING:
                break
            await asyncio.sleep(TURN)
            row = await sync_to_async(_find)(id)
    producer = await sync_to_async(_start)(row)
    end = partial(sync_to_async(_end), producer)
    try:
        yield producer
    except Stopped:
        await end(Status.STOPPED)
    except BaseException as error:
        await asyncio.shield(end(_status_after(error), _reason_of(error)))
        raise
    else:
        await end(Status.COMPLETE)


def _status_after(error: BaseException) -> Status:
    return Status.FAILED if isinstance(error, Exception) else Status.INTERRUPTED


def _reason_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _find(answer_id: Any) -> Answer:
    row = rows.fetch(answer_id)
    if row is None:
        raise LookupError(f"there is no answer {answer_id}")
    return row


def _start(row: Answer) -> Producer:
    """Make a queued answer a streaming one of this process."""
    producer = Producer(row)
    flushing.flusher.add(producer)
    try:
        queued = Answer.objects.using(database()).filter(pk=row.pk, status=Status.QUEUED)
        # a transaction would hold the lock of the row for as long as the model runs
        with transaction.atomic(using=database(), durable=True):
            changed = queued.update(
                status=Status.STREAMING, producer=flushing.flusher.uid, began=timezone.now()
            )
        row.refresh_from_db(using=database())
        if changed:
            return producer
        if row.has_ended:
            raise Stopped(f"answer {row.pk} has ended: {row.status}")
        raise LookupError(f"answer {row.pk} is {row.status}")
    except BaseException:
        flushing.flusher.remove(producer)
        raise


def _end(producer: Producer, status: str, error: str = "") -> None:
    """End an answer. The flusher keeps what the database could not take."""
    try:
        producer.wait_until_idle()
    finally:
        flushing.flusher.remove(producer)
    try:
        producer.end(status, error)
    finally:
        if producer.is_left:
            flushing.flusher.keep(producer)
