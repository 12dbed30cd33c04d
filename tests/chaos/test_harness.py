"""The harness itself: clients get all of a quiet run, and the judge sees what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chaos.harness import OPTIONS, chaos, complaints
from tests.chaos.publishers import Key
from tests.chaos.subscribers import Received, Subscriber
from tests.chaos.verdict import complaints_of
from tests.server import Server

ONE, TWO, THREE, LATE = Key("p", 1), Key("p", 2), Key("p", 3), Key("q", 1)


def received(*keys: Key, first: int = 1) -> list[Received]:
    """These, with offsets that follow on each other."""
    return [Received("e", first + n, key) for n, key in enumerate(keys)]


GOOD = received(ONE, LATE, TWO, THREE)
JUMP = [*received(ONE, LATE, TWO), Received("e", 5, THREE)]

JUDGEMENTS: dict[str, tuple[list[Received], str]] = {
    "everything": (GOOD, ""),
    "without unknown": (received(ONE, TWO, THREE), ""),
    "acknowledged one lost by all": (received(ONE, LATE, THREE), "lacks acknowledged: 1: p/2"),
    "twice": (received(ONE, LATE, TWO, TWO, THREE), "got twice: 1: p/2"),
    "stranger": (received(ONE, TWO, Key("x", 7), THREE), "got what nobody published: 1: x/7"),
    "offset jumps": (JUMP, "out of order by offset: 1: 5 (p/3) after 3 (p/2)"),
    "publisher's order": (
        received(ONE, THREE, TWO),
        "out of order by publisher: 1: p/2 after p/3",
    ),
}


@pytest.mark.parametrize(("got", "expected"), JUDGEMENTS.values(), ids=JUDGEMENTS)
def test_judge_tells_what_is_wrong(got: list[Received], expected: str) -> None:
    found = [expected] if expected else []
    assert complaints(got, {ONE, TWO, THREE}, {LATE}, got) == found


def test_judge_compares_with_others() -> None:
    """An unknown one is lost by all, or by none."""
    got, behind = received(ONE, TWO, THREE), received(ONE, TWO, THREE, LATE)
    one, other = (complaints(got, {ONE, TWO, THREE}, {LATE}, like) for like in (GOOD, behind))
    difference = f"at 1: {received(TWO, first=2)[0]}, not {GOOD[1]}"
    assert one == [f"differs from others: 1: {difference}"]
    assert other == ["differs from others: 1: 3 publications, not 4"]


async def test_everybody_gets_everything_when_nothing_is_broken(
    serve: Callable[..., Server], unique: str
) -> None:
    server = serve(**OPTIONS)
    async with chaos([server], [f"rec:{unique}a", f"rec:{unique}b"]) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(25)
        await everybody.settle()
        assert everybody.publishers.failures == []
        assert everybody.subscribers.closes == []


async def test_client_that_is_cut_comes_back_and_recovers(
    serve: Callable[..., Server], unique: str
) -> None:
    server = serve(**OPTIONS)
    async with chaos([server], [f"rec:{unique}"], publishers=1, subscribers=3) as everybody:
        everybody.publishers.start()
        await everybody.publishers.progress(5)
        await everybody.subscribers.all[0].cut()
        await everybody.publishers.progress(5)
        await everybody.settle()
        assert everybody.subscribers.closes == [1006]
        assert everybody.subscribers.recovered == [True]


BOTH = received(ONE, TWO)
TWICE, ORDER = "some came twice", "some came out of order"
ANEW: dict[str, tuple[list[Received], list[int], list[str]]] = {
    "never": (received(ONE, TWO, THREE), [], []),
    "told": ([*BOTH, *BOTH], [2], []),
    "untold": ([*BOTH, *BOTH], [], [TWICE, ORDER]),
    "twice after it was told": (received(ONE, TWO, TWO), [1], [TWICE]),
    "jump": ([*received(ONE), *received(TWO, first=5)], [], [ORDER]),
}


@pytest.mark.parametrize(("got", "beginnings", "expected"), ANEW.values(), ids=ANEW)
def test_client_that_was_told_may_begin_anew(
    got: list[Received], beginnings: list[int], expected: list[str]
) -> None:
    client = Subscriber("s", [], ["a"], "json")
    client.beginnings["a"].extend(beginnings)
    assert complaints_of(client, "a", got, set()) == expected
