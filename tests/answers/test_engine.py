"""Answers whose engine is away for a while, or loses what it had."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from realtime.answers import AnswerFailed, Producer, answer, begin, end, producer
from realtime.answers import flusher as flushing
from realtime.answers.models import Answer, Status
from realtime.answers.sweeper import AnswerSweeper
from realtime.config import sources
from realtime.errors import EngineUnavailable
from tests.answers.conftest import CHAT
from tests.answers.helpers import channel, data, write_as
from tests.answers.installing import installed
from tests.redis_server import RedisServer
from tests.server import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

READ_TIMEOUT = 1


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """The engine of a service, whose worker is this process."""
    server = RedisServer(tmp_path).start()
    sources.configuration.override(
        redis_url=server.url, redis_read_timeout=READ_TIMEOUT, namespaces=[CHAT]
    )
    with installed():
        yield server
    sources.configuration.override()
    server.kill()


def is_acknowledged(a: Producer) -> bool:
    """Whether the producer knows that the engine has what it wrote."""
    return a._position.offset > 0


def text(row: Answer) -> str:
    return Answer.objects.get(pk=row.pk).text


@pytest.mark.parametrize("status", [Status.COMPLETE, Status.STOPPED])
def test_text_that_the_engine_lost_is_in_the_row(redis: RedisServer, status: str) -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        a.write("before ")
        wait_until(lambda: is_acknowledged(a))
        redis.restart(empty=True)
        with mock.patch.object(flushing, "flusher", flushing.AnswerFlusher()):
            sweeper = AnswerSweeper()  # of another process
            sweeper.sweep()
            sweeper.sweep()
        assert Answer.objects.get(pk=row.pk).status == Status.STREAMING  # it will renew its lease
        a.write("after ")
        wait_until(lambda: text(row) == "before after ")
        a.write("last")
        wait_until(lambda: "last" in "".join(data(row.own_channel)))
        if status == Status.STOPPED:
            end(row, status)
    row.refresh_from_db()
    assert (row.status, row.text) == (status, "before after last")


def test_silent_producer_learns_of_a_stop_after_the_engine_lost_its_text(
    redis: RedisServer,
) -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        a.write("before")
        wait_until(lambda: data(row.own_channel))
        redis.restart(empty=True)
        end(row, Status.STOPPED)
        wait_until(lambda: a.stopped)


def test_text_that_the_engine_lost_is_in_the_row_of_a_silent_producer(redis: RedisServer) -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        a.write("before")
        wait_until(lambda: is_acknowledged(a))
        redis.restart(empty=True)
        wait_until(lambda: text(row) == "before")
        a.write(" after")
    row.refresh_from_db()
    assert (row.status, row.text) == (Status.COMPLETE, "before after")


def test_inputs_are_new_ones_after_the_engine_lost_the_channel(redis: RedisServer) -> None:
    name = channel()
    with answer(name, user=7, form="text") as a:
        for value in ("first", "second"):
            write_as("7", name, value)
        assert a.inputs() == ["first", "second"]
        redis.restart(empty=True)
        wait_until(lambda: _is_written(name, "third"))
        assert a.inputs() == ["third"]
        write_as("7", name, "fourth")
        assert a.inputs() == ["fourth"]


def _is_written(name: str, value: str) -> bool:
    with suppress(EngineUnavailable):  # it has just come back
        write_as("7", name, value)
        return True
    return False


def test_long_answer_is_saved_while_it_is_written(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "SAVE_AFTER", 3)
    row = begin(channel(), form="text")
    written: list[str] = []

    def write(a: Producer) -> str:
        written.append(f"{len(written)} ")
        a.write(written[-1])
        return text(row)

    with answer(id=row.pk) as a:
        wait_until(lambda: write(a))
        assert "".join(written).startswith(text(row))
    row.refresh_from_db()
    assert row.text == "".join(written)


def test_engine_that_is_away_for_too_long_fails_the_answer(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "AWAY", 2 * READ_TIMEOUT)
    row = begin(channel(), form="text")

    def write() -> None:
        with answer(id=row.pk) as a:
            a.write("before ")
            wait_until(lambda: data(row.own_channel))
            redis.freeze()
            a.write("after ")
            wait_until(lambda: a.stopped)
            with pytest.raises(AnswerFailed):
                a.write("more")
            a.write("more")

    with pytest.raises(EngineUnavailable):
        write()

    def was_swept() -> bool:
        AnswerSweeper().sweep()
        return text(row) != ""

    redis.resume()
    wait_until(was_swept)
    row.refresh_from_db()
    assert row.status == Status.FAILED
    assert row.error.startswith("AnswerFailed")
    assert row.text.startswith("before ")


@pytest.mark.urls("tests.site.answers")
def test_stop_while_the_engine_is_away_is_refused_for_now(
    redis: RedisServer, client: Client
) -> None:
    client.force_login(user := get_user_model().objects.create(username="reader"))
    row = begin(channel(), user=user)
    redis.kill()
    assert client.post(f"/answers/{row.pk}/stop").status_code == 503
    assert Answer.objects.get(pk=row.pk).status == Status.QUEUED


def test_block_that_is_left_while_the_engine_is_away_raises(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "END_TIMEOUT", READ_TIMEOUT)
    row = begin(channel(), form="text")

    def write() -> None:
        with answer(id=row.pk) as a:
            a.write("before ")
            wait_until(lambda: data(row.own_channel))
            redis.freeze()
            a.write("after")

    def was_swept() -> bool:
        AnswerSweeper().sweep()
        return text(row) != ""

    with pytest.raises(EngineUnavailable):
        write()
    redis.resume()
    wait_until(was_swept)
    row.refresh_from_db()
    assert row.status == Status.FAILED
    assert row.text.startswith("before ")


def test_answer_that_lost_its_last_words_is_not_complete(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "AWAY", 2 * READ_TIMEOUT)
    row = begin(channel(), form="text")

    def write() -> None:
        with answer(id=row.pk) as a:
            a.write("before ")
            wait_until(lambda: data(row.own_channel))
            redis.freeze()
            a.write("after")
            wait_until(lambda: a.stopped)
            redis.resume()
            wait_until(lambda: data(row.own_channel))

    with pytest.raises(AnswerFailed):
        write()

    row.refresh_from_db()
    assert row.status == Status.FAILED
    assert row.error.startswith("AnswerFailed")


def test_end_that_waits_for_the_engine_loses_no_words(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = begin(channel(), form="text")
    take, taken = Producer.take, [0]

    def counted(a: Producer, now: float) -> Any:
        taken[0] += 1
        return take(a, now)

    def resume_late(a: Producer) -> None:
        wait_until(lambda: a.stopped)
        monkeypatch.setattr(producer, "AWAY", -1.0)
        before = taken[0]
        wait_until(lambda: taken[0] >= before + 2)
        redis.resume()

    with answer(id=row.pk) as a:
        a.write("before ")
        wait_until(lambda: data(row.own_channel))
        redis.freeze()
        a.write("after ")
        wait_until(lambda: a._under_way is not None)
        a.write("more")
        monkeypatch.setattr(Producer, "take", counted)
        resuming = threading.Thread(target=resume_late, args=(a,))
        resuming.start()
    resuming.join()
    row.refresh_from_db()
    assert (row.status, row.text) == (Status.COMPLETE, "before after more")


def test_end_waits_for_an_engine_that_is_away_for_a_moment(redis: RedisServer) -> None:
    row = begin(channel(), form="text")
    with answer(id=row.pk) as a:
        a.write("before ")
        wait_until(lambda: data(row.own_channel))
        redis.freeze()
        a.write("after")
        wait_until(lambda: a._under_way is not None)
        Timer(2 * READ_TIMEOUT, redis.resume).start()
    row.refresh_from_db()
    assert (row.status, row.text) == (Status.COMPLETE, "before after")
