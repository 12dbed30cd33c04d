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
