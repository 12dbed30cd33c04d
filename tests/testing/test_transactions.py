"""Publications of transactions, in every kind of Django's test cases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings

import realtime
from realtime.testing import RealtimeTestMixin, capture
from tests.testing.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("options")


def roll_back(work: Callable[[], object]) -> None:
    """Do something in a transaction that fails."""
    with suppress(ZeroDivisionError), transaction.atomic():
        work()
        raise ZeroDivisionError


class Transactions:
    """What must hold whether the test's own transaction is committed or not."""

    realtime_outbox: Any
    realtime_client: Any
    assertPublished: Any  # noqa: N815, the name in the kit
    assertNotPublished: Any  # noqa: N815, too

    def test_publication_is_there_when_its_transaction_has_ended(self) -> None:
        with transaction.atomic():
            realtime.publish("news", 1)
            assert self.realtime_outbox == []
        assert self.realtime_outbox == [("news", 1)]

    def test_publication_of_what_is_rolled_back_is_never_there(self) -> None:
        roll_back(lambda: realtime.publish("news", 0))
        assert self.realtime_outbox == []
        with transaction.atomic():
            realtime.publish("news", 1)
            roll_back(lambda: realtime.publish("news", 2))
            realtime.publish("news", 3)
        assert self.realtime_outbox.data("news") == [1, 3]

    def test_order_is_that_of_commits(self) -> None:
        with transaction.atomic():
            realtime.publish("news", 1)
        realtime.publish("news", 2)
        with transaction.atomic():
            realtime.publish("news", 3)
            realtime.publish("news", 0, on_commit=False)
            assert self.realtime_outbox.data("news") == [1, 2, 0]
        assert self.realtime_outbox.data("news") == [1, 2, 0, 3]

    def test_callbacks_that_are_executed_publish_nothing_twice(self) -> None:
        with transaction.atomic():
            realtime.publish("news", 1)
        with TestCase.captureOnCommitCallbacks(execute=True), transaction.atomic():
            realtime.publish("news", 2)
            realtime.publish("news", 3)
        assert self.realtime_outbox.data("news") == [1, 2, 3]

    def test_publications_read_before_callbacks_are_executed_are_there_once(self) -> None:
        with TestCase.captureOnCommitCallbacks(execute=True):
            with transaction.atomic():
                realtime.publish("news", 1)
            assert self.realtime_outbox.data("news") == [1]
        assert self.realtime_outbox.data("news") == [1]

    def test_cleared_publication_of_a_transaction_does_not_come_back(self) -> None:
        with transaction.atomic():
            realtime.publish("news", 1)
        self.realtime_outbox.clear()
        assert self.realtime_outbox == []

    def test_transaction_that_began_before_the_inner_block_belongs_to_the_outer_one(self) -> None:
        with transaction.atomic():
            realtime.publish("news", 1)
        with capture() as inner, transaction.atomic():
            realtime.publish("news", 2)
        assert inner.data("news") == [2]
        assert self.realtime_outbox.data("news") == [1]

    def test_client_receives_what_a_transaction_published_and_committed(self) -> None:
        with self.realtime_client("17") as client:
            client.subscribe("news")
            roll_back(lambda: realtime.publish("news", 0))
            with transaction.atomic():
                realtime.publish("news", 1)
                client.expect_nothing()
            client.expect("news", 1)
            client.expect_nothing()

    async def test_coroutine_reads_what_a_transaction_published(self) -> None:
        from asgiref.sync import sync_to_async

        def create() -> None:
            with transaction.atomic():
                Group.objects.create(name="staff")
                realtime.publish("news", 1)

        async with self.realtime_client("17") as client:
            await client.asubscribe("news")
            await sync_to_async(create)()
            assert self.realtime_outbox == [("news", 1)]
            await client.aexpect("news", 1)

    def test_assert_published_counts(self) -> None:
        for data in (1, 1, 2):
            realtime.publish("news", data)
        self.assertPublished("news")
        self.assertPublished("news", count=3)
        self.assertPublished("news", 1, count=2)
        self.assertNotPublished("news", 3)
        self.assertNotPublished("other")

    def test_assert_published_says_what_was_published_instead(self) -> None:
        realtime.publish("news", {"text": "hi"})
        with pytest.raises(AssertionError, match=r"\{'text': 'hi'\}") as failure:
            self.assertPublished("news", {"text": "ho"})
        assert "{'text': 'ho'}" in str(failure.value)
        with pytest.raises(AssertionError, match="2 times; found 1"):
            self.assertPublished("news", count=2)
        with pytest.raises(AssertionError):
            self.assertNotPublished("news")


@override_settings(REALTIME=OPTIONS)
class TestInTestCase(Transactions, RealtimeTestMixin, TestCase):
    """The transaction around each test is never committed."""

    group: Group

    @classmethod
    def setUpTestData(cls) -> None:
        with transaction.atomic():
            cls.group = Group.objects.create(name="before")
            realtime.publish("news", "before")
        realtime.publish("news", "before")

    def test_what_test_data_publish_goes_nowhere(self) -> None:
        realtime.publish("news", 1)
        assert self.realtime_outbox == [("news", 1)]


@override_settings(REALTIME=OPTIONS)
class TestInTransactionTestCase(Transactions, RealtimeTestMixin, TransactionTestCase):
    """Transactions are real."""

    def test_thread_publishes_after_its_own_commit(self) -> None:
        seen: list[int] = []

        def work() -> None:
            with transaction.atomic():
                realtime.publish("news", 1)
                seen.append(len(self.realtime_outbox))
            connections.close_all()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

        assert seen == [0]
        assert self.realtime_outbox == [("news", 1)]


@override_settings(REALTIME=OPTIONS)
class TestWithoutDatabase(RealtimeTestMixin, SimpleTestCase):
    """A test case that may not use the database."""

    def test_publication_is_in_the_outbox(self) -> None:
        realtime.publish("news", 1)
        self.assertPublished("news", 1, count=1)

    def test_commands_have_a_service_to_go_to(self) -> None:
        with self.realtime_client("17") as client:
            realtime.disconnect("17")
            client.closed(3012)


@pytest.mark.django_db
def test_outbox_has_what_was_committed_in_its_block() -> None:
    with transaction.atomic():
        realtime.publish("news", 0)  # before it
    with capture() as outbox:
        with transaction.atomic():
            realtime.publish("news", 1)
            assert outbox == []
        assert outbox == [("news", 1)]
    with capture() as late, transaction.atomic():
        realtime.publish("news", 2)
    assert late == [("news", 2)], "read late"
    with transaction.atomic():
        with capture() as outlived:
            realtime.publish("news", 3)
        assert outlived == []
    assert outlived == []
