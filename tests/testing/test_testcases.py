"""What the mixin for unittest gives beside the examples of the documentation."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import SimpleTestCase, TestCase

import realtime
from realtime.answers import answer, begin
from realtime.config import sources
from realtime.errors import NotAvailable
from realtime.testing import RealtimeTestMixin


class SettingsTest(RealtimeTestMixin, SimpleTestCase):
    def test_options_hold_until_the_test_ends(self) -> None:
        self.realtime_settings(client_anonymous=True, anonymous=True)
        self.realtime_settings(presence=True)
        with self.realtime_client() as visitor:
            visitor.subscribe("news")
            assert len(visitor.presence("news")) == 1

    def test_options_of_another_test_do_not(self) -> None:
        assert not sources.current().channel.presence
        with self.realtime_client("17") as reader:
            reader.subscribe("news")
            with pytest.raises(NotAvailable):
                reader.presence("news")


class MapTest(RealtimeTestMixin, TestCase):
    def test_entries_of_a_map_are_compared(self) -> None:
        self.realtime_settings(namespaces=[{"name": "seats", "map": "recoverable"}])
        seats = realtime.map("seats:1")
        for key in "ab":
            seats.put(key, {"user": 7})
        seats.remove("b")
        self.assertMap("seats:1", {"a": {"user": 7}})
        with pytest.raises(AssertionError, match="Wanted in 'seats:1'"):
            self.assertMap("seats:1", {})


@pytest.mark.usefixtures("answers_app")
class AnswerTest(RealtimeTestMixin, TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.realtime_settings(namespaces=[{"name": "chat"}])

    def answer(self, *words: str) -> Any:
        row = begin("chat:1", user=17)
        with answer(id=row.pk) as a:
            for word in words:
                a.write(word)
        return row

    def test_worker_runs_as_it_is(self) -> None:
        with self.realtime_client("17") as reader:
            reader.subscribe("chat:1")
            row = self.answer("Hel", "lo")
            reader.expect("chat:1", {"answer": str(row.pk), "status": "queued"})
            reader.expect("chat:1", {"answer": str(row.pk), "status": "complete"})
        self.assertAnswer(row, text="Hello")
        self.assertAnswer(str(row.pk), status="complete")
        self.assertPublished("chat:1", {"answer": str(row.pk), "status": "complete"})

    def test_differences_fail(self) -> None:
        row = self.answer("Hello")
        wrong: list[dict[str, Any]] = [{"text": "Hallo"}, {"parts": []}, {"status": "stopped"}]
        for expected in wrong:
            with pytest.raises(AssertionError):
                self.assertAnswer(row, **expected)
