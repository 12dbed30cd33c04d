"""Time spans in words."""

from __future__ import annotations

import pytest

from admin_panel.words import age, close_code, duration

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


AGES = [
    (0, "0 seconds"),
    (59, "59 seconds"),
    (MINUTE, "1 minute"),
    (6 * MINUTE - 3, "5 minutes"),
    (HOUR + MINUTE + 30, "1 hour, 1 minute"),
    (DAY + HOUR + 59 * MINUTE, "1 day, 1 hour"),
]


@pytest.mark.parametrize(("seconds", "words"), AGES, ids=[str(seconds) for seconds, _ in AGES])
def test_age_is_told_without_seconds_after_a_minute(seconds: float, words: str) -> None:
    assert age(seconds) == words


CODES = [
    ("0", "the client went"),
    ("3008", "slow"),
    ("3012", "force disconnect / no pong"),
    ("3503", "force disconnect"),
    ("4123", ""),
]


@pytest.mark.parametrize(("code", "words"), CODES, ids=[code for code, _ in CODES])
def test_close_code_is_told_in_the_words_of_the_log(code: str, words: str) -> None:
    assert close_code(code) == words
