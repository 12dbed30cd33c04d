"""Following one stream that does not continue what was handed on."""

from __future__ import annotations

import pytest

from realtime.engine.base import History
from realtime.protocol.messages import StreamPosition
from realtime.streams.order import Follower, StreamLost
from tests.unit.streams.order_parts import (
    OTHER,
    E,
    arrive,
    following,
    lose,
    publication,
    read,
    start,
)

# streams that do not continue


@pytest.mark.parametrize(
    ("top", "kept"),
    [
        pytest.param(9, [7, 8, 9], id="trimmed"),
        pytest.param(9, [], id="expired or removed"),
        pytest.param(9, [9], id="removed, then one more"),
    ],
)
def test_stream_that_does_not_keep_what_is_missing_is_lost(top: int, kept: list[int]) -> None:
    follower = following(4)
    arrive(follower, 5)
    arrive(follower, 9)
    follower.ask()

    with pytest.raises(StreamLost) as lost:
        read(follower, top, *kept)

    assert lost.value.renew is False


def test_stream_of_another_epoch_is_lost_and_needs_no_new_one() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()

    with pytest.raises(StreamLost) as lost:
        read(follower, 6, 4, 5, 6, epoch=OTHER)

    assert lost.value.renew is False


def test_publication_of_another_epoch_is_not_handed_on_but_is_a_reason_to_read() -> None:
    follower = following(4)

    assert arrive(follower, 5, epoch=OTHER) == []
    assert follower.behind
    follower.ask()
    assert read(follower, 4, 4) == []  # it was a stray one: the stream is as it was
    assert arrive(follower, 5) == [5]


def test_top_below_what_was_handed_on_is_a_loss_within_the_epoch() -> None:
    follower = following(4)
    arrive(follower, 5, 6)
    follower.doubt()
    follower.ask()

    with pytest.raises(StreamLost) as lost:
        read(follower, 5, 5)

    assert lost.value.renew is True


def test_top_below_the_position_of_the_start_is_a_loss_within_the_epoch() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()

    with pytest.raises(StreamLost) as lost:
        read(follower, 3)

    assert lost.value.renew is True


def test_top_below_what_had_arrived_before_ask_is_a_loss_within_the_epoch() -> None:
    follower = following(4)
    arrive(follower, 8)
    follower.ask()

    with pytest.raises(StreamLost) as lost:
        read(follower, 7, 4, 5, 6, 7)

    assert lost.value.renew is True


def test_top_below_what_arrived_after_ask_is_not_a_loss() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()
    arrive(follower, 6)

    assert read(follower, 5, 4, 5) == [5, 6]


# another publication in the place of the last one


@pytest.mark.parametrize(
    "way", ["on arrival", "after a wait", "from the stream"], ids=lambda way: f"handed on {way}"
)
def test_other_publication_in_the_place_of_the_last_one_is_a_loss_within_the_epoch(
    way: str,
) -> None:
    follower = following(4)
    match way:
        case "on arrival":
            assert arrive(follower, 5) == [5]
        case "after a wait":
            arrive(follower, 6)
            assert arrive(follower, 5) == [5, 6]
        case "from the stream":
            follower.doubt()
            follower.ask()
            assert read(follower, 5, 4, 5) == [5]
    last = follower.ask()
    other = publication(last, "another")
    next_one = publication(last + 1)

    with pytest.raises(StreamLost) as lost:
        follower.read(History((other, next_one), StreamPosition(last + 1, E)))

    assert lost.value.renew is True


def test_same_publication_in_the_place_of_the_last_one_is_no_loss() -> None:
    follower = following(4)
    arrive(follower, 5)
    follower.doubt()
    follower.ask()

    assert read(follower, 6, 5, 6) == [6]


def test_publication_at_the_position_of_the_start_may_be_any() -> None:
    follower = following(4)
    follower.doubt()
    follower.ask()
    kept = (publication(4, "whatever"), publication(5))

    assert follower.read(History(kept, StreamPosition(5, E))) == [publication(5)]


# after a loss


def test_new_stream_is_followed_from_where_it_is() -> None:
    follower = following(4)
    follower.doubt()
    lose(follower, 2, 1, 2, epoch=OTHER)
    assert start(follower, 2, OTHER) == []

    assert follower.position == StreamPosition(2, OTHER)
    assert not follower.behind
    assert arrive(follower, 3, epoch=OTHER) == [3]


def test_publications_of_the_lost_stream_are_not_handed_on_as_those_of_the_new_one() -> None:
    follower = following(2)
    arrive(follower, 4)
    lose(follower, 3, 1, 2, 3, epoch=OTHER)

    assert start(follower, 3, OTHER) == []
    assert follower.position == StreamPosition(3, OTHER)


def test_publications_of_the_lost_stream_are_not_handed_on_after_the_new_one_was_heard_of() -> None:
    follower = Follower()
    follower.ask()
    # the first publication of the new stream overtakes the answer that knows the old one only
    arrive(follower, 1, epoch=OTHER)
    start(follower, 2)
    arrive(follower, 4)
    lose(follower, 3, 1, 2, 3, epoch=OTHER)

    assert start(follower, 3, OTHER) == []
    assert follower.position == StreamPosition(3, OTHER)


def test_publication_of_the_lost_stream_does_not_make_the_new_one_look_lost() -> None:
    follower = following(2)
    arrive(follower, 9)
    lose(follower, 5, 2, 3, 4, 5)
    start(follower, 5, OTHER)

    follower.doubt()
    follower.ask()
    assert read(follower, 6, 5, 6, epoch=OTHER) == [6]


def test_follower_stays_behind_until_the_lost_stream_is_followed_anew() -> None:
    follower = following(4)
    arrive(follower, 9)
    follower.ask()

    with pytest.raises(StreamLost):
        read(follower, 9)

    assert follower.behind
