"""What the sweeper does: ends what nobody writes, gives turns, deletes what is old."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest
from django.utils import timezone

from realtime.answers import answer, begin, sweeper
from realtime.answers import flusher as flushing
from realtime.answers.models import Answer, Status
from realtime.answers.sweeper import KEEP_STREAM, QUEUE_TIMEOUT, AnswerSweeper
from realtime.config import sources
from realtime.hooks.runner import own_connections
from realtime.serving import serving
from tests.answers.helpers import channel, data, ended_ago, statuses
from tests.server import TIMEOUT, wait_until

pytestmark = [
    pytest.mark.usefixtures("over_redis"),
    pytest.mark.django_db(transaction=True),
]


def test_answer_of_a_process_that_died_is_interrupted_with_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        a.write("half")
        wait_until(lambda: data(row.own_channel))
        AnswerSweeper().sweep()
        assert statuses(row) == ["streaming"]  # its process lives
        Answer.objects.filter(pk=row.pk).update(producer=uuid.uuid4().hex)
        monkeypatch.setattr(sweeper, "PATIENCE", 0)
        AnswerSweeper().sweep()

    row.refresh_from_db()
    assert (row.status, row.text) == (Status.INTERRUPTED, "half")


def test_process_with_a_lease_is_alive() -> None:
    with answer(channel()):
        other = flushing.AnswerFlusher()
        assert other.is_alive(flushing.flusher.uid)
        assert not other.is_alive(uuid.uuid4().hex)


def test_answer_that_no_worker_began_fails() -> None:
    row, waiting = begin("chat:queue"), begin("chat:queue", if_busy="queue")
    Answer.objects.filter(pk=row.pk).update(queued=timezone.now() - QUEUE_TIMEOUT)
    AnswerSweeper().sweep()
    assert statuses(row, waiting) == ["failed", "queued"]


def test_waiting_answer_whose_turn_nobody_gave_gets_it() -> None:
    name = channel()
    row, waiting = begin(name), begin(name, if_busy="queue")
    Answer.objects.filter(pk=row.pk).update(status=Status.STOPPED, busy=None)
    AnswerSweeper().sweep()
    assert statuses(waiting) == ["queued"]


def test_chunks_leave_the_engine_and_rows_the_database_in_time() -> None:
    with answer(channel(), form="text") as a:
        a.write("text")
    AnswerSweeper().sweep()
    assert data(a.row.own_channel)

    ended_ago(a.row, KEEP_STREAM)
    AnswerSweeper().sweep()
    assert data(a.row.own_channel) == []
    assert Answer.objects.get(pk=a.id).text == "text"

    sources.configuration.override(**sources.configuration._overrides, answers_keep=3600)
    ended_ago(a.row, timedelta(minutes=59))
    AnswerSweeper().sweep()
    assert Answer.objects.filter(pk=a.id).exists()
    ended_ago(a.row, timedelta(minutes=61))
    AnswerSweeper().sweep()
    assert not Answer.objects.filter(pk=a.id).exists()


def test_node_that_stops_waits_for_no_other_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps, goes_on = Event(), Event()

    def sweep(_: AnswerSweeper) -> None:
        sweeps.set()
        goes_on.wait(TIMEOUT)

    async def sweeping() -> None:
        await serving.start(own_connections)  # and claims the sweep of the service
        await asyncio.to_thread(goes_on.wait, TIMEOUT)
        await serving.stop()

    async def stopping() -> None:
        await serving.start(own_connections)
        async with asyncio.timeout(TIMEOUT / 2):
            await serving.stop()

    monkeypatch.setattr(AnswerSweeper, "sweep", sweep)
    with ThreadPoolExecutor() as pool:
        other = pool.submit(asyncio.run, sweeping())
        try:
            assert sweeps.wait(TIMEOUT)
            asyncio.run(stopping())
        finally:
            goes_on.set()
        other.result()
