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

JUDGEMENTS: list[object] = [
    pytest.param(GOOD, GOOD, [], id="everything"),
    pytest.param(received(ONE, TWO, THREE), received(ONE, TWO, THREE), [], id="without unknown"),
    pytest.param(
        received(ONE, LATE, THREE),
        received(ONE, LATE, THREE),
        ["lacks acknowledged: 1: p/2"],
        id="acknowledged one lost by all",
    ),
    pytest.param(
        received(ONE, LATE, TWO, TWO, THREE),
        received(ONE, LATE, TWO, TWO, THREE),
        ["got twice: 1: p/2"],
        id="twice",
    ),
    pytest.param(
        received(ONE, TWO, Key("x", 7), THREE),
        received(ONE, TWO, Key("x", 7), THREE),
        ["got what nobody published: 1: x/7"],
        id="stranger",
    ),
    pytest.param(
        JUMP, JUMP, ["out of order by offset: 1: 5 (p/3) after 3 (p/2)"], id="offset jumps"
    ),
    pytest.param(
        received(ONE, THREE, TWO),
        received(ONE, THREE, TWO),
        ["out of order by publisher: 1: p/2 after p/3"],
        id="publisher's order",
    ),
    pytest.param(
        received(ONE, TWO, THREE),
        GOOD,
        [f"differs from others: 1: at 1: {received(TWO, first=2)[0]}, not {GOOD[1]}"],
        id="unknown one lost by some",
    ),
    pytest.param(
        received(ONE, TWO, THREE, LATE)[:3],
        received(ONE, TWO, THREE, LATE),
        ["differs from others: 1: 3 publications, not 4"],
        id="ends early",
    ),
]


@pytest.mark.parametrize(("got", "like", "expected"), JUDGEMENTS)
def test_judge_tells_what_is_wrong(
    got: list[Received], like: list[Received], expected: list[str]
) -> None:
    assert complaints(got, {ONE, TWO, THREE}, {LATE}, like) == expected


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


ANEW = [
    pytest.param(received(ONE, TWO, THREE), [], [], id="never"),
    pytest.param([*received(ONE, TWO), *received(ONE, TWO)], [2], [], id="told"),
    pytest.param(
        [*received(ONE, TWO), *received(ONE, TWO)],
        [],
        ["some came twice", "some came out of order"],
        id="untold",
    ),
    pytest.param(received(ONE, TWO, TWO), [1], ["some came twice"], id="twice after it was told"),
    pytest.param(
        [*received(ONE), *received(TWO, first=5)], [], ["some came out of order"], id="jump"
    ),
]


@pytest.mark.parametrize(("got", "beginnings", "expected"), ANEW)
def test_client_that_was_told_may_begin_anew(
    got: list[Received], beginnings: list[int], expected: list[str]
) -> None:
    client = Subscriber("s", [], ["a"], "json")
    client.beginnings["a"].extend(beginnings)

    assert complaints_of(client, "a", got, set()) == expected
