"""Following one stream: what is handed on, when, and in which order."""

from __future__ import annotations

import pytest

from realtime.protocol.messages import StreamPosition
from realtime.streams.order import EARLY_ALLOWED, Follower
from tests.unit.streams.order_parts import OTHER, E, arrive, following, read, start

# one after another


def test_each_publication_that_follows_is_handed_on_at_once() -> None:
    follower = following(4)

    assert [arrive(follower, offset) for offset in (5, 6, 7)] == [[5], [6], [7]]
    assert follower.position == StreamPosition(7, E)
    assert not follower.behind


@pytest.mark.parametrize("again", [7, 6, 4, 1], ids=lambda offset: f"offset {offset}")
def test_publication_that_was_handed_on_or_is_older_is_dropped(again: int) -> None:
    follower = following(4)
    arrive(follower, 5, 6, 7)

    assert arrive(follower, again) == []
    assert not follower.behind
    assert arrive(follower, 8) == [8]


def test_position_is_unknown_until_start() -> None:
    follower = Follower()

    assert follower.position is None
    assert follower.ask() == 0


# what arrives before the start


@pytest.mark.parametrize(
    ("early", "position", "handed_on", "behind"),
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
def test_start_hands_on_what_arrived_early_and_follows(
    early: list[int], position: int, handed_on: list[int], behind: bool
) -> None:
    follower = Follower()
    follower.ask()
    assert arrive(follower, *early) == []

    assert start(follower, position) == handed_on
    assert follower.behind is behind
    assert follower.position == StreamPosition(position + len(handed_on), E)


def test_publication_of_another_epoch_that_arrived_before_the_start_is_not_handed_on() -> None:
    follower = Follower()
    follower.ask()
    arrive(follower, 5, epoch=OTHER)

    assert start(follower, 4) == []
    assert follower.position == StreamPosition(4, E)


def test_doubt_between_ask_and_start_is_not_settled_by_the_start() -> None:
    follower = Follower()
    follower.ask()
    follower.doubt()

    assert start(follower, 4) == []
    assert follower.behind
    assert arrive(follower, 5) == []


def test_doubt_before_ask_is_settled_by_the_start() -> None:
    follower = Follower()
    follower.doubt()
    follower.ask()

    start(follower, 4)

    assert not follower.behind


# gaps


def test_what_comes_after_a_gap_waits_for_the_read() -> None:
    follower = following(4)

    assert arrive(follower, 6, 7) == []
    assert follower.behind
    assert follower.ask() == 4
    assert read(follower, 7, 4, 5, 6, 7) == [5, 6, 7]
    assert follower.position == StreamPosition(7, E)
    assert not follower.behind


def test_missing_one_that_arrives_late_needs_no_read() -> None:
    follower = following(4)
    arrive(follower, 6, 7)

    assert arrive(follower, 5) == [5, 6, 7]
    assert not follower.behind


def test_what_arrived_while_the_stream_was_read_follows_what_was_read() -> None:
    follower = following(4)
    arrive(follower, 6)
    follower.ask()
    assert arrive(follower, 7, 8) == []

    assert read(follower, 6, 4, 5, 6) == [5, 6, 7, 8]
    assert not follower.behind


def test_gap_that_began_while_the_stream_was_read_needs_another_read() -> None:
    follower = following(4)
    arrive(follower, 6)
    follower.ask()
    arrive(follower, 9)

    assert read(follower, 6, 4, 5, 6) == [5, 6]
    assert follower.behind
    assert follower.ask() == 6
    assert read(follower, 9, 6, 7, 8, 9) == [7, 8, 9]
    assert not follower.behind


def test_what_the_read_brings_is_not_handed_on_again_when_it_arrives() -> None:
    follower = following(4)
    arrive(follower, 6)
    follower.ask()
    read(follower, 7, 4, 5, 6, 7)

    assert arrive(follower, 5, 6, 7, 8) == [8]


def test_answer_from_before_the_gap_filled_itself_is_not_a_loss() -> None:
    follower = following(5)
    arrive(follower, 7)
    follower.ask()
    # the engine read the stream now, when its top was 7; the answer takes its time
    assert arrive(follower, 6, 8) == [6, 7, 8]

    assert read(follower, 7, 5, 6, 7) == []
    assert follower.position == StreamPosition(8, E)
    assert arrive(follower, 9) == [9]


# doubts


def test_nothing_is_handed_on_in_doubt_until_the_stream_was_read() -> None:
    follower = following(4)
    follower.doubt()

    assert arrive(follower, 5, 6) == []
    assert follower.behind
    assert follower.ask() == 4
    assert read(follower, 6, 4, 5, 6) == [5, 6]
    assert arrive(follower, 7) == [7]


def test_doubt_without_a_loss_is_settled_by_a_read_that_brings_nothing() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()

    assert read(follower, 4, 4) == []
    assert not follower.behind


def test_doubt_that_comes_after_ask_is_not_settled_by_its_answer() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()
    follower.doubt()

    assert read(follower, 5, 4, 5) == [5]
    assert follower.behind
    assert arrive(follower, 7) == []
    follower.ask()
    assert read(follower, 7, 5, 6, 7) == [6, 7]
    assert not follower.behind


# how much may wait


def test_publications_that_wait_are_bounded_and_more_are_read_from_the_stream() -> None:
    follower = following(0)
    top = EARLY_ALLOWED + 2
    arrive(follower, *range(2, top + 1))

    # the first of them were dropped: what follows must not be handed on without them
    assert arrive(follower, 1) == []
    assert follower.behind
    follower.ask()
    assert read(follower, top, *range(1, top + 1)) == list(range(1, top + 1))
    assert not follower.behind


def test_publications_that_wait_are_not_dropped_below_the_bound() -> None:
    follower = following(0)
    arrive(follower, *range(2, EARLY_ALLOWED + 1))

    assert arrive(follower, 1) == list(range(1, EARLY_ALLOWED + 1))


def test_too_many_publications_before_the_start_make_a_read_necessary() -> None:
    follower = Follower()
    follower.ask()
    arrive(follower, *range(1, EARLY_ALLOWED + 2))

    start(follower, 0)

    assert follower.behind
    follower.ask()
    everything = range(1, EARLY_ALLOWED + 2)
    assert read(follower, EARLY_ALLOWED + 1, *everything)[-1] == EARLY_ALLOWED + 1
