"""The order of one stream: which publications are delivered, when, and in which order."""

from __future__ import annotations

import pytest

from realtime.protocol.messages import StreamPosition
from realtime.streams.order import MAX_EARLY, StreamOrder
from tests.unit.streams.order_parts import OTHER, E, arrive, read, start, started

# one after another


def test_each_publication_that_follows_is_delivered_at_once() -> None:
    order = started(4)
    assert [arrive(order, offset) for offset in (5, 6, 7)] == [[5], [6], [7]]
    assert order.position == StreamPosition(7, E)
    assert not order.is_behind


@pytest.mark.parametrize("again", [7, 6, 4, 1], ids=lambda offset: f"offset {offset}")
def test_publication_that_was_delivered_or_is_older_is_dropped(again: int) -> None:
    order = started(4)
    arrive(order, 5, 6, 7)
    assert arrive(order, again) == []
    assert not order.is_behind
    assert arrive(order, 8) == [8]


def test_position_is_unknown_until_start() -> None:
    order = StreamOrder()
    assert order.position is None
    assert order.begin_read() == 0


# what arrives before the start


@pytest.mark.parametrize(
    ("early", "position", "delivered", "behind"),
    [
        pytest.param([], 4, [], False, id="nothing"),
        pytest.param([5, 6], 4, [5, 6], False, id="what follows"),
        pytest.param([3, 4], 4, [], False, id="what the position has"),
        pytest.param([3, 4, 5], 4, [5], False, id="both"),
        pytest.param([6, 5, 7], 4, [5, 6, 7], False, id="in another order"),
        pytest.param([5, 5], 4, [5], False, id="twice"),
        pytest.param([5, 7], 4, [5], True, id="with a gap"),
        pytest.param([6], 4, [], True, id="after a gap"),
        pytest.param([1, 2], 0, [1, 2], False, id="of a stream that begins"),
    ],
)
def test_start_delivers_what_arrived_early_and_follows(
    early: list[int], position: int, delivered: list[int], behind: bool
) -> None:
    order = StreamOrder()
    order.begin_read()
    assert arrive(order, *early) == []
    assert start(order, position) == delivered
    assert order.is_behind is behind
    assert order.position == StreamPosition(position + len(delivered), E)


def test_publication_of_another_epoch_that_arrived_before_the_start_is_not_delivered() -> None:
    order = StreamOrder()
    order.begin_read()
    arrive(order, 5, epoch=OTHER)
    assert start(order, 4) == []
    assert order.position == StreamPosition(4, E)


def test_doubt_between_ask_and_start_is_not_settled_by_the_start() -> None:
    order = StreamOrder()
    order.begin_read()
    order.suspect_loss()
    assert start(order, 4) == []
    assert order.is_behind
    assert arrive(order, 5) == []


def test_doubt_before_ask_is_settled_by_the_start() -> None:
    order = StreamOrder()
    order.suspect_loss()
    order.begin_read()
    start(order, 4)
    assert not order.is_behind


# gaps


def test_what_comes_after_a_gap_waits_for_the_read() -> None:
    order = started(4)
    assert arrive(order, 6, 7) == []
    assert order.is_behind
    assert order.begin_read() == 4
    assert read(order, 7, 4, 5, 6, 7) == [5, 6, 7]
    assert order.position == StreamPosition(7, E)
    assert not order.is_behind


def test_missing_one_that_arrives_late_needs_no_read() -> None:
    order = started(4)
    arrive(order, 6, 7)
    assert arrive(order, 5) == [5, 6, 7]
    assert not order.is_behind


def test_what_arrived_while_the_stream_was_read_follows_what_was_read() -> None:
    order = started(4)
    arrive(order, 6)
    order.begin_read()
    assert arrive(order, 7, 8) == []
    assert read(order, 6, 4, 5, 6) == [5, 6, 7, 8]
    assert not order.is_behind


def test_gap_that_began_while_the_stream_was_read_needs_another_read() -> None:
    order = started(4)
    arrive(order, 6)
    order.begin_read()
    arrive(order, 9)
    assert read(order, 6, 4, 5, 6) == [5, 6]
    assert order.is_behind
    assert order.begin_read() == 6
    assert read(order, 9, 6, 7, 8, 9) == [7, 8, 9]
    assert not order.is_behind


def test_what_the_read_brings_is_not_delivered_again_when_it_arrives() -> None:
    order = started(4)
    arrive(order, 6)
    order.begin_read()
    read(order, 7, 4, 5, 6, 7)
    assert arrive(order, 5, 6, 7, 8) == [8]


def test_answer_from_before_the_gap_filled_itself_is_not_a_loss() -> None:
    order = started(5)
    arrive(order, 7)
    order.begin_read()
    # the engine read the stream now, when its top was 7; the answer takes its time
    assert arrive(order, 6, 8) == [6, 7, 8]
    assert read(order, 7, 5, 6, 7) == []
    assert order.position == StreamPosition(8, E)
    assert arrive(order, 9) == [9]


# doubts


def test_nothing_is_delivered_after_a_suspected_loss_until_the_stream_was_read() -> None:
    order = started(4)
    order.suspect_loss()
    assert arrive(order, 5, 6) == []
    assert order.is_behind
    assert order.begin_read() == 4
    assert read(order, 6, 4, 5, 6) == [5, 6]
    assert arrive(order, 7) == [7]


def test_doubt_without_a_loss_is_settled_by_a_read_that_brings_nothing() -> None:
    order = started(4)
    order.suspect_loss()
    order.begin_read()
    assert read(order, 4, 4) == []
    assert not order.is_behind


def test_doubt_that_comes_after_ask_is_not_settled_by_its_answer() -> None:
    order = started(4)
    order.suspect_loss()
    order.begin_read()
    order.suspect_loss()
    assert read(order, 5, 4, 5) == [5]
    assert order.is_behind
    assert arrive(order, 7) == []
    order.begin_read()
    assert read(order, 7, 5, 6, 7) == [6, 7]
    assert not order.is_behind


# how much may wait


def test_publications_that_wait_are_bounded_and_more_are_read_from_the_stream() -> None:
    order = started(0)
    top = MAX_EARLY + 2
    arrive(order, *range(2, top + 1))
    # the first of them were dropped: what follows must not be delivered without them
    assert arrive(order, 1) == []
    assert order.is_behind
    order.begin_read()
    assert read(order, top, *range(1, top + 1)) == list(range(1, top + 1))
    assert not order.is_behind


def test_publications_that_wait_are_not_dropped_below_the_bound() -> None:
    order = started(0)
    arrive(order, *range(2, MAX_EARLY + 1))
    assert arrive(order, 1) == list(range(1, MAX_EARLY + 1))


def test_too_many_publications_before_the_start_make_a_read_necessary() -> None:
    order = StreamOrder()
    order.begin_read()
    arrive(order, *range(1, MAX_EARLY + 2))
    start(order, 0)
    assert order.is_behind
    order.begin_read()
    everything = range(1, MAX_EARLY + 2)
    assert read(order, MAX_EARLY + 1, *everything)[-1] == MAX_EARLY + 1
