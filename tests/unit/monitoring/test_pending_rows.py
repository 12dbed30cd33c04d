"""How often, and for how long, metrics ask the database for pending rows."""

from __future__ import annotations

import asyncio
import logging

import pytest

from realtime.monitoring import pending_rows
from realtime.monitoring.pending_rows import Counter
from tests.unit.monitoring.counted_rows import CountedRows

ROWS, OLDEST = "realtime_pending_rows", "realtime_pending_oldest_seconds"


async def test_rows_are_counted_by_their_state() -> None:
    rows = CountedRows()
    rows.counters.relayed = 7
    read = await Counter().read(rows)
    assert read[ROWS] == {("waiting",): 3, ("scheduled",): 2, ("parked",): 1}
    assert read[OLDEST] == {(): 61.5}
    assert read["realtime_pending_relayed_total"]["published",] == 7


async def test_without_the_app_there_are_no_such_metrics() -> None:
    assert await Counter().read(None) == {}


async def test_many_requests_are_one_question() -> None:
    rows, counter = CountedRows(), Counter()
    rows.answers.clear()
    requests = [asyncio.create_task(counter.read(rows)) for _ in range(5)]
    await asyncio.sleep(0)
    rows.answers.set()

    assert all(ROWS in read for read in await asyncio.gather(*requests))
    assert ROWS in await counter.read(rows)
    assert rows.questions == 1
    counter._ask_at = 0.0  # the time has passed
    await counter.read(rows)
    assert rows.questions == 2


async def test_database_that_hangs_delays_metrics_for_a_bounded_time_and_keeps_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending_rows, "TIMEOUT", 0.01)
    rows, counter = CountedRows(), Counter()
    rows.answers.clear()

    reads = [await counter.read(rows) for _ in range(3)]

    assert all(list(read) == ["realtime_pending_relayed_total"] for read in reads)
    assert rows.questions == 1
    rows.answers.set()
    monkeypatch.setattr(pending_rows, "TIMEOUT", 60.0)
    assert ROWS in await counter.read(rows)


async def test_failure_is_one_line_of_the_log_and_leaves_the_rows_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows, counter = CountedRows(), Counter()
    rows.error = ConnectionError("gone")
    with caplog.at_level(logging.WARNING):
        assert ROWS not in await counter.read(rows)
        counter._ask_at = 0.0
        assert ROWS not in await counter.read(rows)
    assert caplog.messages == ["Pending rows could not be counted: gone"]
