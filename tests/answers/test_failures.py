"""Answers whose content, database or users give trouble."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

import realtime
from realtime import hooks
from realtime.answers import Stopped, aanswer, answer, begin, forms, rows, sweeper
from realtime.answers import flusher as flushing
from realtime.answers.models import Answer, Status
from realtime.answers.sweeper import KEEP_STREAM, AnswerSweeper
from realtime.config import sources
from tests.answers.helpers import channel, data, ended_ago, statuses
from tests.server import TIMEOUT, wait_until

pytestmark = [
    pytest.mark.usefixtures("over_redis"),
    pytest.mark.django_db(transaction=True),
]

OF_DJANGO: dict[str, tuple[Any, Any]] = {
    "lazy": (gettext_lazy("Yes"), "Yes"),
    "time": (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    "uuid": (uuid.UUID(int=1), str(uuid.UUID(int=1))),
}


@pytest.mark.parametrize("form", ["ui", "events"])
@pytest.mark.parametrize("kind", OF_DJANGO)
def test_chunk_with_a_value_of_django_is_kept(form: str, kind: str) -> None:
    value, kept = OF_DJANGO[kind]
    with answer(channel(), form=form) as a:
        a.send({"type": "data-x", "data": value})

    row = Answer.objects.get(pk=a.id)
    assert row.status == Status.COMPLETE
    assert {"type": "data-x", "data": kept} in row.parts


@pytest.mark.parametrize("kind", OF_DJANGO)
def test_metadata_with_a_value_of_django_are_kept(kind: str) -> None:
    value, kept = OF_DJANGO[kind]
    with answer(channel()) as a:
        a.finish({"value": value, "half": "\ud83d"})

    finish = Answer.objects.get(pk=a.id).parts[-1]
    assert finish["messageMetadata"] == {"value": kept, "half": "\ufffd"}


@pytest.mark.parametrize("has_others", [True, False])
@pytest.mark.parametrize("is_back_at_once", [True, False])
def test_row_follows_the_end_when_the_database_is_back(
    is_back_at_once: bool, has_others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, original, calls = begin(channel(), form="text"), rows.unended_one, []

    def away(asked: Answer) -> QuerySet[Answer]:
        calls.append(asked)
        if is_back_at_once and len(calls) > 1:
            return original(asked)
        raise DatabaseError("away")

    def write() -> None:
        with answer(id=row.pk) as a:
            a.write("text")
            monkeypatch.setattr(rows, "unended_one", away)

    def has_ended() -> bool:
        AnswerSweeper().sweep()
        return statuses(row) == ["complete"]

    with answer(channel()) if has_others else nullcontext():
        with pytest.raises(DatabaseError):
            write()
        monkeypatch.setattr(rows, "unended_one", original)
        wait_until(has_ended)
    row.refresh_from_db()
    assert row.text == "text"


def test_row_that_the_database_refuses_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad, good = begin(channel()), begin(channel())
    Answer.objects.update(status=Status.STREAMING)
    original = rows.settle

    def settle(row: Answer, *arguments: Any, **options: Any) -> Answer:
        if row.pk == bad.pk:
            raise IntegrityError("CHECK constraint failed")
        return original(row, *arguments, **options)

    monkeypatch.setattr(rows, "settle", settle)
    monkeypatch.setattr(sweeper, "PATIENCE", 0)
    AnswerSweeper().sweep()
    assert statuses(bad, good) == ["streaming", "interrupted"]


def test_answer_is_not_written_inside_a_transaction() -> None:
    row = begin(channel())
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"), answer(id=row.pk):
        pass
    assert statuses(row) == ["queued"]


def test_text_of_a_deleted_user_leaves_the_engine() -> None:
    user = get_user_model().objects.create(username="going")
    with answer(channel(), user=user, form="text") as a:
        a.write("secret")
    with answer(channel(), user=user, form="text") as running:
        running.write("secret")
        user.delete()
    assert data(a.row.own_channel) == data(running.row.own_channel) == []


def test_chunks_leave_the_engine_before_their_row_is_deleted() -> None:
    sources.configuration.override(**sources.configuration._overrides, answers_keep=1)
    with answer(channel(), form="text") as a:
        a.write("text")
    ended_ago(a.row, timedelta(seconds=2))
    AnswerSweeper().sweep()
    assert Answer.objects.filter(pk=a.id).exists()

    ended_ago(a.row, KEEP_STREAM)
    AnswerSweeper().sweep()
    assert not Answer.objects.filter(pk=a.id).exists()
    assert data(a.row.own_channel) == []


def test_one_write_may_be_as_long_as_an_answer() -> None:
    text = "x" * (3 << 20)
    with answer(channel(), form="text") as a:
        a.write(text)
    assert Answer.objects.get(pk=a.id).text == text


@pytest.mark.parametrize("form", ["ui", "ag-ui", "text"])
def test_block_that_was_left_takes_nothing_more(form: str) -> None:
    with answer(channel(), form=form) as a:
        a.write("text")
    with pytest.raises(Stopped):
        a.write("more")
    assert Answer.objects.get(pk=a.id).text == "text"


@pytest.mark.parametrize("chunk", ["text", None, [], 1])
@pytest.mark.parametrize("form", ["ui", "ag-ui"])
def test_chunk_that_is_no_object_is_refused(form: str, chunk: Any) -> None:
    with answer(channel(), form=form) as a, pytest.raises(TypeError, match="is an object"):
        a.send(chunk)


def test_size_of_an_answer_is_counted_in_bytes() -> None:
    sources.configuration.override(**sources.configuration._overrides, answers_max_size=100)
    with answer(channel(), form="text") as a:
        a.write("\u20ac" * 33)
        with pytest.raises(realtime.answers.AnswerFailed):
            a.write("\u20ac")


def test_hook_that_is_a_coroutine_saves_with_the_end() -> None:
    @hooks.answer_end("chat:{pk}")
    async def save(row: Answer) -> None:
        await Answer.objects.filter(pk=row.pk).aupdate(error="saved")

    with answer(channel(), form="text") as a:
        a.write("text")
    assert Answer.objects.get(pk=a.id).error == "saved"


def test_reason_that_no_database_keeps_does_not_keep_the_answer() -> None:
    with pytest.raises(ValueError, match="half"), answer(channel()) as a:
        raise ValueError("half \ud83d\0")
    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.error) == (Status.FAILED, "ValueError: half \ufffd\ufffd")


def nested(depth: int) -> Any:
    value: Any = "text"
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.parametrize("depth", [forms.MAX_DEPTH + 1, 10_000])
def test_chunk_that_is_nested_deeper_than_databases_keep_is_refused(depth: int) -> None:
    with answer(channel(), form="events") as a:
        a.send(nested(forms.MAX_DEPTH))
        with pytest.raises(TypeError, match="nested"):
            a.send(nested(depth))
        with pytest.raises(TypeError, match="nested"):
            a.finish(nested(depth))
    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.parts) == (Status.COMPLETE, [nested(forms.MAX_DEPTH)])


async def test_task_that_is_cancelled_while_it_begins_leaves_no_answer_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = await sync_to_async(begin)(channel(), form="text")
    begins, goes_on, renew = Event(), Event(), flushing.flusher.renew

    def slow() -> None:
        renew()
        begins.set()
        goes_on.wait(TIMEOUT)

    async def write() -> None:
        async with aanswer(id=row.pk):
            pytest.fail("it was cancelled")

    monkeypatch.setattr(flushing.flusher, "renew", slow)
    task = asyncio.ensure_future(write())
    await asyncio.to_thread(begins.wait, TIMEOUT)
    task.cancel()
    await asyncio.wait((task,), timeout=0.1)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await sync_to_async(statuses)(row) == ["interrupted"]
