"""Outages: one log line each."""

from __future__ import annotations

import time

import pytest

from realtime.metrics import Outage


def test_outage_begins_with_a_failure_after_a_minute_without_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    outage = Outage()
    begins = []
    for pause in (0, 0, 59, 59, 60, 1):
        now += pause
        begins.append(outage.begins())
    assert begins == [True, False, False, False, True, False]


def test_failures_of_an_outage_that_was_announced_are_not_its_beginning() -> None:
    outage = Outage()
    outage.announced()  # of one shard
    outage.announced()  # of another one
    begins = [outage.begins()]
    outage.over()
    begins.append(outage.begins())
    outage.over()
    begins.append(outage.begins())
    assert begins == [False, False, False]
