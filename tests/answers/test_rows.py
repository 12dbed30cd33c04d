"""Rows of answers: who may begin, who waits, what the end calls, what is deleted."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from itertools import repeat
from typing import Any
from unittest.mock import Mock

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client

import realtime
from realtime import hooks
from realtime.answers import (
    AnswerFailed,
    Busy,
    Producer,
    Stopped,
    aanswer,
    answer,
    begin,
    end,
    erase,
    writing,
)
from realtime.answers.models import Answer, Status
from realtime.answers.sweeper import AnswerSweeper
from realtime.config import sources
from realtime.errors import Error, InternalError, LimitExceeded, NotServing
from realtime.pending.models import Pending
from tests.answers.helpers import channel, data, statuses, write_as
from tests.server import wait_until

pytestmark = [
    pytest.mark.usefixtures("over_redis"),
    pytest.mark.django_db(transaction=True),
]

WORDS = [f"word{number} " for number in range(50)]


def fail_after(a: Producer, text: str) -> None:
    a.write(text)
    raise ValueError("no such city")


@pytest.mark.parametrize("form", ["ui", "ag-ui", "text"])
def test_text_is_whole_in_channel_and_row(form: str) -> None:
    with answer(channel(), form=form) as a:
        for word in WORDS:
            a.write(word)

    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.text) == (Status.COMPLETE, "".join(WORDS))
    assert "".join(WORDS) in str(data(row.own_channel))


def test_chunks_of_the_site_are_in_the_row_in_their_order() -> None:
    chunks: list[dict[str, Any]] = [
        {"type": "start", "messageId": "m"},
        {"type": "tool-input-start", "toolCallId": "t", "toolName": "weather"},
        {"type": "tool-input-delta", "toolCallId": "t", "inputTextDelta": '{"city":'},
        {"type": "tool-input-delta", "toolCallId": "t", "inputTextDelta": '"Oslo"}'},
        {"type": "tool-output-available", "toolCallId": "t", "output": {"celsius": -3}},
        {"type": "finish", "finishReason": "stop"},
    ]
    with answer(channel()) as a:
        for chunk in chunks:
            a.send(chunk)

    joined = chunks[2] | {"inputTextDelta": '{"city":"Oslo"}'}
    assert Answer.objects.get(pk=a.id).parts == [*chunks[:2], joined, *chunks[4:]]


@pytest.mark.parametrize(
    ("form", "chunk", "status"),
    [
        ("ui", {"type": "finish", "finishReason": "length"}, Status.COMPLETE),
        ("ui", {"type": "abort", "reason": "enough"}, Status.STOPPED),
        ("ui", {"type": "error", "errorText": "Sorry"}, Status.FAILED),
        ("ag-ui", {"type": "RUN_FINISHED", "outcome": {"type": "success"}}, Status.COMPLETE),
        ("ag-ui", {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}, Status.STOPPED),
        ("ag-ui", {"type": "RUN_ERROR", "message": "Sorry"}, Status.FAILED),
    ],
)
def test_end_of_the_site_is_the_end(form: str, chunk: dict[str, Any], status: Status) -> None:
    with answer(channel(), form=form) as a:
        a.write("text")
        a.send(chunk)

    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.parts[-1]) == (status, chunk)
    assert data(row.own_channel)[-1][-1] == chunk


def test_events_are_kept_one_by_one_whatever_they_are() -> None:
    events = [{"type": "text-delta", "id": "1", "delta": "a"}] * 2 + [[1], "text", None]
    with answer(channel(), form="events") as a:
        for event in events:
            a.send(event)

    assert Answer.objects.get(pk=a.id).parts == events


def test_nul_and_half_characters_become_replacements() -> None:
    with answer(channel(), form="text") as a:
        a.write("a\0b\ud83d")

    assert Answer.objects.get(pk=a.id).text == "a\ufffdb\ufffd"


def test_exception_ends_the_answer_with_its_text_and_a_reason_for_the_site_alone() -> None:
    with pytest.raises(ValueError, match="no such city"), answer(channel()) as a:
        fail_after(a, "half")

    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.text) == (Status.FAILED, "half")
    assert row.error == "ValueError: no such city"
    assert "city" not in str(data(row.own_channel))


async def test_async_producer_and_a_cancelled_one() -> None:
    async with aanswer(channel(), form="text") as a:
        a.write("whole")
    row = await Answer.objects.aget(pk=a.id)
    assert (row.status, row.text) == (Status.COMPLETE, "whole")

    async def write(reached: asyncio.Event) -> None:
        async with aanswer(id=row.pk) as a:
            a.write("half")
            reached.set()
            await asyncio.Event().wait()

    row = await sync_to_async(begin)(channel(), form="text")
    reached = asyncio.Event()
    task = asyncio.ensure_future(write(reached))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await row.arefresh_from_db()
    assert (row.status, row.text) == (Status.INTERRUPTED, "half")


def test_refuse_queue_stop_and_beside() -> None:
    name = channel()
    first = begin(name)
    with pytest.raises(Busy) as refused:
        begin(name)
    assert refused.value.answer == first
    waiting = begin(name, if_busy="queue")
    beside = begin(name, if_busy="beside")
    assert statuses(first, waiting, beside) == ["queued", "waiting", "queued"]

    end(first, Status.STOPPED)
    assert statuses(first, waiting) == ["stopped", "queued"]

    newest = begin(name, if_busy="stop")
    assert statuses(waiting, newest, beside) == ["stopped", "queued", "queued"]


def test_producer_of_a_waiting_answer_begins_at_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    name, looks = channel(), list[float]()
    first, second = begin(name), begin(name, form="text", if_busy="queue")

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            end(first, Status.COMPLETE)

    monkeypatch.setattr(writing, "time", Mock(sleep=pause))
    with answer(id=second.pk) as a:
        a.write("2")
    assert looks == [writing.TURN] * 3
    assert Answer.objects.get(pk=second.pk).text == "2"


def test_producer_waits_for_its_turn_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    name, looks = channel(), list[float]()
    begin(name)
    second = begin(name, if_busy="queue")
    monkeypatch.setattr(writing, "time", Mock(sleep=looks.append))
    with pytest.raises(LookupError), answer(id=second.pk):
        pass
    assert sum(looks) == 300


def test_user_has_so_many_unended_answers_at_most() -> None:
    rows = [begin(channel(), user=7) for _ in range(3)]
    with pytest.raises(LimitExceeded):
        begin(channel(), user=7)
    begin(channel(), user=8)
    begin(channel())

    end(rows[0], Status.STOPPED)
    begin(channel(), user=7)


def test_subscribers_learn_of_begin_and_end() -> None:
    name = channel()
    with transaction.atomic():
        row = begin(name)
        assert data(name) == []
    assert data(name) == [{"answer": str(row.pk), "status": "queued"}]

    end(row, Status.STOPPED)  # with the row, whatever dies in between
    told = [json.loads(each.data) for each in Pending.objects.filter(channel=name)]
    assert told == [{"answer": str(row.pk), "status": "stopped"}]


def test_producer_learns_of_a_stop_and_keeps_what_it_wrote() -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        fired: list[bool] = []
        a.token.on_cancel(lambda: fired.append(True))
        a.write("before")
        wait_until(lambda: data(row.own_channel))
        end(row, Status.STOPPED)
        with pytest.raises(Stopped):
            deque(map(a.write, repeat("x")), 0)
        assert (a.stopped, a.token.is_cancelled, fired) == (True, True, [True])

    row.refresh_from_db()
    assert (row.status, row.text) == (Status.STOPPED, "before")


@pytest.mark.urls("tests.site.answers")
def test_user_stops_by_post(client: Client) -> None:
    client.force_login(user := get_user_model().objects.create(username="reader"))
    own, anothers = begin(channel(), user=user), begin(channel(), user="another")
    answers = [client.post(f"/answers/{row.pk}/stop") for row in (own, own, anothers)]
    assert [each.status_code for each in answers] == [200, 200, 403]
    assert [each.json() for each in answers[:2]] == [{"status": "stopped"}] * 2
    assert statuses(own, anothers) == ["stopped", "queued"]


def test_silent_producer_learns_of_a_stop() -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        end(row, Status.STOPPED)
        wait_until(lambda: a.stopped)


def test_answer_that_has_ended_or_runs_cannot_be_written() -> None:
    row = begin(channel())
    with answer(id=row.pk), pytest.raises(LookupError), answer(id=row.pk):
        pass
    with pytest.raises(Stopped), answer(id=row.pk):
        pass
    with pytest.raises(LookupError), answer(id=uuid.uuid4()):
        pass
    with pytest.raises(LookupError), answer(id="no ID"):
        pass


def test_longer_answer_than_allowed_fails() -> None:
    sources.configuration.override(**sources.configuration._overrides, answers_max_size=100)
    with pytest.raises(AnswerFailed), answer(channel(), form="text") as a:
        deque(map(a.write, "x" * 101), 0)
    row = Answer.objects.get(pk=a.id)
    assert (row.status, row.text) == (Status.FAILED, "x" * 100)


def test_worker_without_an_engine_that_reaches_it_is_told_what_to_do() -> None:
    sources.configuration.override(namespaces=[{"name": "chat"}])
    row = begin(channel())
    with pytest.raises(NotServing, match="SERVICE_REDIS_URL"), answer(id=row.pk):
        pass
    assert statuses(row) == ["queued"]


def test_inputs_are_what_the_user_wrote_since_the_begin() -> None:
    name = channel()

    def write(user: str, value: object) -> None:
        write_as(user, name, value)

    write("7", "before")
    with answer(name, user=7, form="text") as a:
        assert a.inputs() == []
        write("7", "first")
        write("8", "of another")
        realtime.publish(name, "of the site")
        write("8", {"answer": a.id, "status": "queued"})  # pretends to be the begin
        assert a.inputs() == ["first"]
        write("7", {"units": "metric"})
        write("7", "third")
        assert a.inputs() == [{"units": "metric"}, "third"]
        assert a.inputs() == []
        write("7", "last")
        realtime.publish(name, {"answer": a.id, "status": "stopped"})  # as its end does
        assert a.inputs() == ["last"]

    with answer(name, form="text") as a:  # of an anonymous visitor: there may be others
        write("", "of whomever")
        assert a.inputs() == []


# the end


def test_hook_runs_in_the_transaction_of_the_end_and_again_after_a_failure() -> None:
    name, calls = channel(), []

    @hooks.answer_end("chat:{pk}")
    def save(run: Answer) -> None:
        calls.append(
            (run.status, run.text, dict(run.params), transaction.get_connection().in_atomic_block)
        )
        if len(calls) == 1:
            raise RuntimeError("the site's table is locked")

    with pytest.raises(InternalError), answer(name, form="text") as a:
        a.write("text")
    assert statuses(a.row) == ["streaming"]

    AnswerSweeper().sweep()
    assert statuses(a.row) == ["complete"]
    assert calls == [("complete", "text", {"pk": name.removeprefix("chat:")}, True)] * 2


@pytest.mark.parametrize("status", ["bogus", "waiting", "queued", "streaming"])
@pytest.mark.parametrize("form", ["ui", "text"])
def test_answer_ends_with_a_status_of_an_end(form: str, status: str) -> None:
    row = begin(channel(), form=form)
    with pytest.raises(ValueError, match=status):
        end(row, status)
    assert statuses(row) == ["queued"]


@pytest.mark.parametrize("name", ["", "chat:\u00e9", "nope:1", "chat:" + "x" * 300])
def test_answer_in_a_channel_that_cannot_be_has_no_row(name: str) -> None:
    with pytest.raises(Error):
        begin(name)
    assert not Answer.objects.exists()


def test_answer_ends_whose_namespace_the_site_has_no_more() -> None:
    row = begin(channel())
    overrides = {**sources.configuration._overrides, "namespaces": []}
    sources.configuration.override(**overrides)
    end(row, "stopped")
    assert statuses(row) == ["stopped"]


def test_answers_that_wait_outlive_one_that_takes_the_turn() -> None:
    name = channel()
    first, waiting = begin(name), begin(name, if_busy="queue")
    second = begin(name, if_busy="stop")
    assert statuses(first, waiting, second) == ["stopped", "waiting", "queued"]
    end(second, "stopped")
    assert statuses(waiting) == ["queued"]


def test_erased_text_is_in_neither_row_nor_engine() -> None:
    with answer(channel(), form="text") as a:
        a.write("secret")
        with pytest.raises(ValueError, match="has not ended"):
            erase(a.row)
    erase(a.row)
    row = Answer.objects.get(pk=a.id)
    assert (row.text, row.parts, data(row.own_channel)) == ("", [], [])


def test_answers_of_a_deleted_user_are_deleted_and_stop() -> None:
    user = get_user_model().objects.create(username="going")
    row = begin(channel(), user=user, form="text")
    with answer(id=row.pk) as a:
        a.write("text")
        user.delete()
        assert not Answer.objects.filter(pk=row.pk).exists()
        wait_until(lambda: a.stopped)
