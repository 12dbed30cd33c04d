"""Recovery: the table of cases, the merge with what arrived meanwhile, and a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.recovery import Recovered, merge, newest_only, recover, recover_newest
from tests.unit.parts import data, quickly

E, OTHER, MISSING = "qKzD", "AAAA", ""


def publications(*offsets: int) -> tuple[Publication, ...]:
    return tuple(Publication(data(str(offset)), None, offset) for offset in offsets)


def stream(top: int, *kept: int) -> History:
    return History(publications(*kept), StreamPosition(top, E))


TRIMMED = stream(6, 4, 5, 6)
GONE = stream(6)
REMOVED_THEN_ONE = stream(7, 7)
NEVER = stream(0)


@pytest.mark.parametrize(
    ("history", "offset", "epoch", "expected", "recovered"),
    [
        pytest.param(TRIMMED, 6, E, [], True, id="R=6"),
        pytest.param(TRIMMED, 5, E, [6], True, id="R=5"),
        pytest.param(TRIMMED, 3, E, [4, 5, 6], True, id="R=3"),
        pytest.param(TRIMMED, 2, E, [4, 5, 6], False, id="R=2 gap"),
        pytest.param(TRIMMED, 0, E, [4, 5, 6], False, id="R=0 gap"),
        pytest.param(TRIMMED, 7, E, [], False, id="R=7"),
        pytest.param(TRIMMED, 100, E, [], False, id="R=100"),
        pytest.param(TRIMMED, 3, OTHER, [4, 5, 6], False, id="R=3 wrong epoch"),
        pytest.param(TRIMMED, 3, MISSING, [4, 5, 6], False, id="R=3 no epoch"),
        pytest.param(TRIMMED, 6, OTHER, [], False, id="R=6 wrong epoch"),
        pytest.param(TRIMMED, 6, MISSING, [], False, id="R=6 no epoch"),
        pytest.param(GONE, 6, E, [], True, id="removed R=6"),
        pytest.param(GONE, 5, E, [], False, id="removed R=5"),
        pytest.param(REMOVED_THEN_ONE, 6, E, [7], True, id="removed, one more, R=6"),
        pytest.param(REMOVED_THEN_ONE, 5, E, [7], False, id="removed, one more, R=5"),
        pytest.param(NEVER, 0, E, [], True, id="never published R=0"),
        pytest.param(NEVER, 0, OTHER, [], False, id="never published, other epoch"),
        pytest.param(stream(2, 1, 2), 0, E, [1, 2], True, id="all of it"),
    ],
)
def test_answer_to_a_client_that_was_away(
    history: History, offset: int, epoch: str, expected: list[int], recovered: bool
) -> None:
    answer = recover(history, StreamPosition(offset, epoch))
    assert [publication.offset for publication in answer.publications] == expected
    assert answer.recovered is recovered
    assert answer.position == history.position


ANSWER = Recovered(publications(4, 5), StreamPosition(5, E), True)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param((), [4, 5], id="nothing held"),
        pytest.param((6, 7), [4, 5, 6, 7], id="the next ones"),
        pytest.param((4, 5), [4, 5], id="known ones"),
        pytest.param((5, 6), [4, 5, 6], id="one known, one next"),
        pytest.param((6, 6), [4, 5, 6], id="one twice"),
        pytest.param((6, 5, 7), [4, 5, 6, 7], id="one late"),
    ],
)
def test_what_was_held_back_is_added_once_and_in_order(
    held: tuple[int, ...], expected: list[int]
) -> None:
    merged = merge(ANSWER, publications(*held))
    assert merged is not None
    assert [publication.offset for publication in merged.publications] == expected
    assert merged.position == StreamPosition(expected[-1], E)
    assert merged.recovered


@pytest.mark.parametrize("held", [(7,), (6, 8), (5, 7)])
def test_gap_between_history_and_what_was_held_is_insufficient(held: tuple[int, ...]) -> None:
    assert merge(ANSWER, publications(*held)) is None


def test_merge_does_not_make_a_failed_recovery_good() -> None:
    answer = Recovered((), StreamPosition(5, E), False)
    merged = merge(answer, publications(6))
    assert merged is not None
    assert not merged.recovered


@quickly
@given(
    st.integers(0, 30), st.integers(0, 30), st.integers(0, 35), st.sampled_from([E, OTHER, MISSING])
)
def test_answer_agrees_with_the_model(top: int, size: int, since: int, epoch: str) -> None:
    kept = range(max(1, top - size + 1), top + 1)
    answer = recover(stream(top, *kept), StreamPosition(since, epoch))
    # what a client that forgets nothing would ask for: every offset after its own
    missed = range(since + 1, top + 1)
    assert [p.offset for p in answer.publications] == [o for o in missed if o in kept]
    assert answer.recovered is (
        epoch == E and since <= top and all(offset in kept for offset in missed)
    )


@quickly
@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10))
def test_client_misses_nothing_and_gets_nothing_twice(
    since: int, published: int, more: int
) -> None:
    top = since + published
    held_from = max(1, top - 3)
    held = range(held_from, top + more + 1)
    answer = recover(stream(top, *range(1, top + 1)), StreamPosition(since, E))
    merged = merge(answer, publications(*held))
    assert merged is not None
    assert [p.offset for p in merged.publications] == list(range(since + 1, top + more + 1))
    assert merged.position == StreamPosition(top + more, E)
    assert merged.recovered


# cache mode: the newest publication is all that counts


@pytest.mark.parametrize(
    ("history", "offset", "epoch", "expected", "recovered"),
    [
        pytest.param(stream(6, 6), 6, E, [], True, id="nothing missed"),
        pytest.param(stream(6, 6), 3, E, [6], True, id="behind"),
        pytest.param(stream(6, 6), 0, MISSING, [6], True, id="no position"),
        pytest.param(stream(6, 6), 9, E, [6], True, id="too far"),
        pytest.param(stream(6, 6), 6, OTHER, [6], True, id="another epoch"),
        pytest.param(stream(6, 5), 3, E, [], False, id="the newest one removed"),
        pytest.param(GONE, 6, E, [], True, id="none kept, at the top"),
        pytest.param(GONE, 5, E, [], False, id="none kept, behind"),
        pytest.param(GONE, 6, OTHER, [], False, id="none kept, another epoch"),
        pytest.param(NEVER, 0, E, [], False, id="never published"),
    ],
)
def test_answer_in_cache_mode(
    history: History, offset: int, epoch: str, expected: list[int], recovered: bool
) -> None:
    answer = recover_newest(history, StreamPosition(offset, epoch))
    assert [publication.offset for publication in answer.publications] == expected
    assert (answer.recovered, answer.position) == (recovered, history.position)


@pytest.mark.parametrize(
    ("answer", "held", "expected", "recovered"),
    [
        (Recovered(publications(5), StreamPosition(5, E), True), (), [5], True),
        (Recovered(publications(5), StreamPosition(5, E), True), (5, 6, 7), [7], True),
        (Recovered((), StreamPosition(5, E), True), (5,), [], True),
        (Recovered((), StreamPosition(5, E), False), (), [], False),
        (Recovered((), StreamPosition(5, E), False), (6,), [6], True),
    ],
)
def test_newest_publication_that_was_held_back_counts(
    answer: Recovered, held: tuple[int, ...], expected: list[int], recovered: bool
) -> None:
    merged = merge(answer, publications(*held))
    assert merged is not None
    newest = newest_only(merged)
    assert [publication.offset for publication in newest.publications] == expected
    assert (newest.recovered, newest.position) == (recovered, merged.position)
