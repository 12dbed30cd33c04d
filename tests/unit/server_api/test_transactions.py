"""Publishing and transactions: after the commit, in order, and not at all without one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models.signals import post_save
from django.test import TestCase

import realtime
from realtime.server_api.transactions import Outcomes, Publications
from realtime.serving import serving
from tests.unit.server_api.transaction_parts import RecordingPublisher, Sent, record, rolled_back

committing = pytest.mark.django_db(transaction=True)
"""The test's transactions are real."""
wrapped = pytest.mark.django_db
"""The test runs in a transaction that is never committed, as in Django's TestCase."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What goes out, at the moment it does."""
    return record(monkeypatch)


@committing
def test_publication_goes_out_after_the_outermost_commit(sent: Sent) -> None:
    with transaction.atomic():
        with transaction.atomic():
            realtime.publish("news", 1)
        assert sent == []
    assert sent == [("news", b"1")]


@committing
def test_publication_of_a_rolled_back_transaction_never_goes_out(sent: Sent) -> None:
    with rolled_back():
        realtime.publish("news", 1)
    with transaction.atomic():
        realtime.publish("news", 2)
        transaction.set_rollback(True)
    with transaction.atomic():  # a commit later brings nothing back
        pass

    assert sent == []


@committing
def test_publication_of_a_rolled_back_savepoint_never_goes_out(sent: Sent) -> None:
    with transaction.atomic():
        realtime.publish("news", 1)
        with rolled_back():
            realtime.publish("news", 2)
        realtime.publish("news", 3)

    assert sent == [("news", b"1"), ("news", b"3")]


@committing
def test_publication_that_does_not_wait_goes_out_at_once_and_stays(sent: Sent) -> None:
    with rolled_back():
        realtime.publish("news", 1, on_commit=False)
        realtime.publish_many([("news", 2), ("news", 3)], on_commit=False)
        realtime.broadcast(["news"], 4, on_commit=False)
        assert [data for _, data in sent] == [b"1", b"2", b"3", b"4"]

    assert len(sent) == 4


@committing
def test_publication_outside_a_transaction_goes_out_at_once(sent: Sent) -> None:
    with transaction.atomic():
        pass
    realtime.publish("news", 1)
    assert sent == [("news", b"1")]


@committing
def test_publications_go_out_in_their_order_among_other_work_after_the_commit(sent: Sent) -> None:
    with transaction.atomic():
        realtime.publish("news", 1)
        transaction.on_commit(lambda: sent.append(("work", b"")))
        realtime.publish_many([("news", 2), ("other", 3), ("news", 4)])
        realtime.broadcast(["news", "other"], 5)

    assert sent == [
        ("news", b"1"),
        ("work", b""),
        ("news", b"2"),
        ("other", b"3"),
        ("news", b"4"),
        ("news", b"5"),
        ("other", b"5"),
    ]


@committing
def test_publication_by_work_after_the_commit_goes_out_at_once(sent: Sent) -> None:
    with transaction.atomic():
        transaction.on_commit(lambda: realtime.publish("news", 1))
    assert sent == [("news", b"1")]


@committing
def test_data_are_those_of_the_call_also_when_they_change_before_the_commit(sent: Sent) -> None:
    data = {"n": 1}
    with transaction.atomic():
        realtime.publish("news", data)
        data["n"] = 2
    assert sent == [("news", b'{"n":1}')]


@committing
def test_handler_of_a_saved_row_publishes_after_its_commit(sent: Sent) -> None:
    def saved(instance: Group, **_: Any) -> None:
        realtime.publish("groups", instance.name)

    post_save.connect(saved, sender=Group)
    try:
        with transaction.atomic():
            Group.objects.create(name="staff")
            assert sent == []
        with rolled_back():
            Group.objects.create(name="nobody")
    finally:
        post_save.disconnect(saved, sender=Group)

    assert sent == [("groups", b'"staff"')]


@committing
def test_transaction_of_another_thread_is_none_of_mine(sent: Sent) -> None:
    with transaction.atomic():
        thread = threading.Thread(target=realtime.publish, args=("news", 1))
        thread.start()
        thread.join()
        assert sent == [("news", b"1")]


@committing
def test_async_versions_publish_at_once(sent: Sent) -> None:
    with transaction.atomic():
        async_to_sync(realtime.apublish)("news", 1)
        async_to_sync(realtime.apublish_many)([("news", 2), ("news", 3)])
        async_to_sync(realtime.abroadcast)(["news"], 4)
        assert [data for _, data in sent] == [b"1", b"2", b"3", b"4"]


@committing
def test_publication_without_autocommit_goes_out_at_once(sent: Sent) -> None:
    """Django does not say when such a transaction is committed."""
    transaction.set_autocommit(False)
    try:
        realtime.publish("news", 1)
        assert sent == [("news", b"1")]
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@wrapped
def test_transaction_around_a_test_does_not_count(sent: Sent) -> None:
    assert connection.in_atomic_block
    realtime.publish("news", 1)
    assert sent == [("news", b"1")]


@wrapped
def test_transaction_in_a_test_counts_and_its_callbacks_can_be_executed(sent: Sent) -> None:
    with TestCase.captureOnCommitCallbacks() as callbacks:
        with transaction.atomic():
            realtime.publish("news", 1)
        assert sent == []

    (callback,) = callbacks
    callback()
    callback()
    assert sent == [("news", b"1")]


# mistakes and failures

CALLS: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "no JSON form": (partial(realtime.publish, "news", object()), TypeError),
    "unknown namespace": (partial(realtime.publish, "nope:a", 1), realtime.Error),
    "no channel": (partial(realtime.publish, "", 1), realtime.Error),
    "second has no JSON form": (
        lambda: realtime.publish_many([("news", 1), ("news", object())]),
        TypeError,
    ),
    "second namespace is unknown": (
        lambda: realtime.publish_many([("news", 1), ("nope:a", 2)]),
        realtime.Error,
    ),
    "second has no channel": (
        lambda: realtime.publish_many([("news", 1), ("", 2)]),
        realtime.Error,
    ),
    "none to publish": (lambda: realtime.publish_many([]), realtime.Error),
    "broadcast into an unknown namespace": (
        lambda: realtime.broadcast(["news", "nope:a"], 1),
        realtime.Error,
    ),
    "broadcast into nothing": (lambda: realtime.broadcast([], 1), realtime.Error),
    "broadcast of no JSON form": (lambda: realtime.broadcast(["news"], object()), TypeError),
}


@committing
@pytest.mark.parametrize(("call", "error"), CALLS.values(), ids=CALLS)
def test_mistake_is_raised_at_once_also_in_a_transaction_and_nothing_is_published(
    sent: Sent, call: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call()
    with transaction.atomic(), pytest.raises(error):
        call()
    assert sent == []


@pytest.mark.parametrize(
    ("call", "async_name"),
    [
        (lambda: realtime.publish("news", 1), "apublish there"),
        (lambda: realtime.publish_many([("news", 1)]), "apublish_many there"),
        (lambda: realtime.broadcast(["news"], 1), "abroadcast there"),
    ],
    ids=["publish", "publish_many", "broadcast"],
)
async def test_sync_function_on_an_event_loop_is_refused_and_names_the_async_version(
    sent: Sent, call: Callable[[], object], async_name: str
) -> None:
    with pytest.raises(RuntimeError, match=f"await realtime.{async_name}"):
        call()
    assert sent == []


@committing
def test_failure_after_the_commit_is_logged_and_hides_neither_commit_nor_later_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(RecordingPublisher):
        def send(self, publications: Publications) -> Outcomes:
            raise realtime.EngineUnavailable("Redis is away")

    monkeypatch.setattr(serving, "publisher", Failing())
    later: list[int] = []

    with transaction.atomic():
        Group.objects.create(name="staff")
        realtime.publish("news", 1)
        transaction.on_commit(lambda: later.append(1))

    assert Group.objects.filter(name="staff").exists()
    assert later == [1]
    (entry,) = [entry for entry in caplog.records if entry.levelname == "ERROR"]
    assert "realtime.publish" in entry.message
    assert "Redis is away" in entry.message


@committing
def test_process_that_serves_no_clients_logs_it_after_the_commit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with transaction.atomic():
        Group.objects.create(name="staff")
        realtime.publish("news", 1)
    assert Group.objects.filter(name="staff").exists()
    assert "This process serves no clients" in caplog.text
