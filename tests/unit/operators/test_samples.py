"""Samples: one for each ten seconds, with what was counted, for an hour."""

from __future__ import annotations

import pytest

from realtime.operators.questions import SLOT_SECONDS
from realtime.operators.samples import CLOSED, KEPT, MAX_CODES, OTHER, SPAN, Reading, Samples

BEGIN = 1_000_000.0
"""Unix seconds at which a slot begins."""


def reading(connections: int = 0, **totals: int) -> Reading:
    return Reading({"connections": connections}, totals)


@pytest.fixture
def samples() -> Samples:
    made = Samples()
    made.begin(BEGIN, reading(published=100))
    return made


def test_sample_has_the_state_and_what_was_counted_since_the_last_one(samples: Samples) -> None:
    samples.add(BEGIN + 10, reading(7, published=103))
    samples.add(BEGIN + 20, reading(5, published=103))
    samples.add(BEGIN + 30, reading(6, published=110, delivered=4))
    first = int(BEGIN) // SLOT_SECONDS + 1
    assert samples.slots == [first, first + 1, first + 2]
    assert samples.figures() == {
        "connections": [7, 5, 6],
        "published": [3, 0, 7],
        "delivered": [0, 0, 4],
        SPAN: [10_000, 10_000, 10_000],
    }


def test_what_was_not_sampled_leaves_a_gap_and_the_next_sample_covers_it(samples: Samples) -> None:
    samples.add(BEGIN + 10, reading(published=110))
    samples.add(BEGIN + 45, reading(published=145))
    first = int(BEGIN) // SLOT_SECONDS + 1
    assert samples.slots == [first, first + 3]
    assert samples.figures()["published"] == [10, 35]
    assert samples.figures()[SPAN] == [10_000, 35_000]


def test_samples_of_an_hour_are_kept_and_older_ones_forgotten(samples: Samples) -> None:
    for number in range(1, KEPT + 3):
        samples.add(BEGIN + 10 * number, reading(number))
    last = int(BEGIN) // SLOT_SECONDS + KEPT + 2
    assert samples.slots == list(range(last - KEPT + 1, last + 1))
    assert samples.figures()["connections"] == list(range(3, KEPT + 3))


def test_clock_that_is_set_back_leaves_no_sample_of_the_future(samples: Samples) -> None:
    for number in (1, 2, 3):
        samples.add(BEGIN + 10 * number, reading(number, published=100 + number))
    samples.add(BEGIN + 10.5, reading(9, published=110))
    samples.add(BEGIN + 20, reading(8, published=111))
    first = int(BEGIN) // SLOT_SECONDS + 1
    assert samples.slots == [first, first + 1]
    assert samples.figures()["published"] == [1, 8]


def test_clock_that_is_set_back_by_a_little_loses_nothing(samples: Samples) -> None:
    samples.add(BEGIN + 10, reading(1, published=101))
    assert samples.add(BEGIN + 19, reading(2, published=105)) is None
    samples.add(BEGIN + 20, reading(3, published=106))
    assert samples.figures()["published"] == [1, 5]


def test_close_codes_beyond_a_number_are_counted_together(samples: Samples) -> None:
    codes = {f"{CLOSED}{4000 + number}": 1 for number in range(MAX_CODES + 5)}
    samples.add(BEGIN + 10, Reading({}, codes))
    samples.add(BEGIN + 20, Reading({}, dict.fromkeys(codes, 3)))
    figures = samples.figures()
    assert len([name for name in figures if name.startswith(CLOSED)]) == MAX_CODES + 1
    assert figures[f"{CLOSED}4000"] == [1, 2]
    assert figures[OTHER] == [5, 10]


def test_counter_that_falls_counts_as_nothing(samples: Samples) -> None:
    samples.add(BEGIN + 10, reading(published=40))
    samples.add(BEGIN + 20, reading(published=42))
    assert samples.figures()["published"] == [0, 2]
