"""Time spans in words."""

from __future__ import annotations

import pytest

from admin_panel.words import duration

MINUTE, HOUR, DAY = 60, 3600, 86400

SPANS = [
    (0, "0 seconds"),
    (-5, "0 seconds"),
    (0.9, "0 seconds"),
    (1, "1 second"),
    (59.9, "59 seconds"),
    (MINUTE, "1 minute"),
    (2 * MINUTE + 1, "2 minutes, 1 second"),
    (HOUR + 30, "1 hour"),
    (HOUR + MINUTE + 30, "1 hour, 1 minute"),
    (DAY - 1, "23 hours, 59 minutes"),
    (DAY + 59 * MINUTE, "1 day"),
    (3 * DAY + 4 * HOUR + 5, "3 days, 4 hours"),
    (400 * DAY, "400 days"),
]


@pytest.mark.parametrize(("seconds", "words"), SPANS, ids=[str(seconds) for seconds, _ in SPANS])
def test_time_span_is_told_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words
