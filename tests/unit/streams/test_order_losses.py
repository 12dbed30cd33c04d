"""The order of one stream that does not continue after the last delivery."""

from __future__ import annotations

import pytest

from realtime.engine.base import History
from realtime.protocol.messages import StreamPosition
from realtime.streams.order import StreamLost, StreamOrder
from tests.unit.streams.order_parts import (
    OTHER,
    E,
    arrive,
    lose,
    publication,
    read,
    start,
    started,
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
    order = started(4)
    arrive(order, 5)
    arrive(order, 9)
    order.begin_read()
    with pytest.raises(StreamLost) as lost:
        read(order, top, *kept)
    assert lost.value.renew is False
    assert order.is_behind


def test_nothing_is_delivered_between_the_loss_to_another_epoch_and_the_next_start() -> None:
    order = started(4)
    order.begin_read()  # a check: nothing is missing
    with pytest.raises(StreamLost) as lost:
        read(order, 6, 4, 5, 6, epoch=OTHER)
    assert lost.value.renew is False
    assert arrive(order, 5) == []
    assert order.is_behind


def test_publication_of_another_epoch_is_not_delivered_but_is_a_reason_to_read() -> None:
    order = started(4)
    assert arrive(order, 5, epoch=OTHER) == []
    assert order.is_behind
    order.begin_read()
    assert read(order, 4, 4) == []  # it was a stray one: the stream is as it was
    assert arrive(order, 5) == [5]


@pytest.mark.parametrize(
    ("arrived", "top", "kept"),
    [
        pytest.param([5, 6], 5, [5], id="below the last delivery"),
        pytest.param([], 3, [], id="below the start"),
        pytest.param([8], 7, [4, 5, 6, 7], id="below what arrived before the read"),
        pytest.param([6, 8], 7, [4, 5, 6, 7], id="between two that arrived before the read"),
    ],
)
def test_top_that_is_too_low_is_a_loss_within_the_epoch(
    arrived: list[int], top: int, kept: list[int]
) -> None:
    order = started(4)
    arrive(order, *arrived)
    order.suspect_loss()
    order.begin_read()
    with pytest.raises(StreamLost) as lost:
        read(order, top, *kept)
    assert lost.value.renew is True


def test_top_below_what_arrived_after_the_read_began_is_not_a_loss() -> None:
    order = started(4)
    order.suspect_loss()
    order.begin_read()
    arrive(order, 6)
    assert read(order, 5, 4, 5) == [5, 6]


# another publication in the place of the last one


@pytest.mark.parametrize(
    "way", ["on arrival", "after a wait", "from the stream"], ids=lambda way: f"delivered {way}"
)
def test_other_publication_in_the_place_of_the_last_one_is_a_loss_within_the_epoch(
    way: str,
) -> None:
    order = started(4)
    match way:
        case "on arrival":
            assert arrive(order, 5) == [5]
        case "after a wait":
            arrive(order, 6)
            assert arrive(order, 5) == [5, 6]
        case "from the stream":
            order.suspect_loss()
            order.begin_read()
            assert read(order, 5, 4, 5) == [5]
    last = order.begin_read()
    other = publication(last, "another")
    next_one = publication(last + 1)

    with pytest.raises(StreamLost) as lost:
        order.end_read(History((other, next_one), StreamPosition(last + 1, E)))

    assert lost.value.renew is True


def test_same_publication_in_the_place_of_the_last_one_is_not_a_loss() -> None:
    order = started(4)
    arrive(order, 5)
    order.suspect_loss()
    order.begin_read()
    assert read(order, 6, 5, 6) == [6]


@pytest.mark.parametrize(
    ("history", "renewed"),
    [
        pytest.param(History((), StreamPosition(4, E), "u4"), None, id="the same"),
        pytest.param(History((), StreamPosition(4, E), "other"), True, id="another at the top"),
        pytest.param(
            History((publication(5),), StreamPosition(5, E), "u5", "u4"), None, id="the same before"
        ),
        pytest.param(
            History((publication(5),), StreamPosition(5, E), "u5", "other"),
            True,
            id="another before",
        ),
        pytest.param(
            History((publication(5),), StreamPosition(5, E)), None, id="unknown, of older versions"
        ),
    ],
)
def test_publication_at_the_position_of_the_start_is_known(
    history: History, renewed: bool | None
) -> None:
    """Also when it never arrived here, and when it is not kept any more."""
    order = started(4, "u4")
    order.suspect_loss()
    order.begin_read()
    if renewed is None:
        order.end_read(history)
        assert not order.is_behind
    else:
        with pytest.raises(StreamLost) as lost:
            order.end_read(history)
        assert lost.value.renew is renewed


@pytest.mark.parametrize(
    ("offset", "uid", "expected"),
    [(4, "u4", True), (4, "", True), (4, "other", False), (5, "u5", False), (3, "u3", False)],
)
def test_check_compares_offset_and_uid(offset: int, uid: str, expected: bool) -> None:
    order = started(4, "u4")
    assert order.is_at(History((), StreamPosition(offset, E), uid)) is expected


def test_publication_at_the_position_of_the_start_may_be_any_where_it_is_unknown() -> None:
    order = started(4)
    order.suspect_loss()
    order.begin_read()
    kept = (publication(4, "whatever"), publication(5))
    assert order.end_read(History(kept, StreamPosition(5, E))) == [publication(5)]


# after a loss


def test_new_stream_is_followed_from_where_it_is() -> None:
    order = started(4)
    order.suspect_loss()
    lose(order, 2, 1, 2, epoch=OTHER)
    assert start(order, 2, OTHER) == []
    assert order.position == StreamPosition(2, OTHER)
    assert not order.is_behind
    assert arrive(order, 3, epoch=OTHER) == [3]


def test_publications_of_the_lost_stream_are_not_delivered_as_those_of_the_new_one() -> None:
    order = started(2)
    arrive(order, 4)
    lose(order, 3, 1, 2, 3, epoch=OTHER)
    assert start(order, 3, OTHER) == []
    assert order.position == StreamPosition(3, OTHER)


def test_publications_of_the_lost_stream_are_not_delivered_after_one_of_the_new_stream() -> None:
    order = StreamOrder()
    order.begin_read()
    # the first publication of the new stream overtakes the answer that knows the old one only
    arrive(order, 1, epoch=OTHER)
    start(order, 2)
    arrive(order, 4)
    lose(order, 3, 1, 2, 3, epoch=OTHER)
    assert start(order, 3, OTHER) == []
    assert order.position == StreamPosition(3, OTHER)


def test_publication_of_the_lost_stream_does_not_make_the_new_one_look_lost() -> None:
    order = started(2)
    arrive(order, 9)
    lose(order, 5, 2, 3, 4, 5)
    start(order, 5, OTHER)
    order.suspect_loss()
    order.begin_read()
    assert read(order, 6, 5, 6, epoch=OTHER) == [6]


def test_publication_that_arrives_while_the_new_position_is_read_is_delivered() -> None:
    order = started(4)
    arrive(order, 9)
    lose(order, 9, 9)  # the others are not kept any more
    arrive(order, 10)
    assert start(order, 9) == [10]
    assert not order.is_behind
