"""Newcomers: clients that connect go on in turns, and others get the loop in between."""

from __future__ import annotations

import asyncio
import itertools

from realtime.node.newcomers import PER_TURN, Newcomers
from tests.unit.parts import turns


async def test_newcomers_go_on_at_once_while_there_are_few() -> None:
    newcomers = Newcomers(asyncio.get_running_loop())

    for _ in range(5):
        # a coroutine that never waits ends at its first step
        waiting = [newcomers.turn() for _ in range(PER_TURN)]
        assert [_has_ended(each) for each in waiting] == [True] * PER_TURN
        await turns(1)


async def test_others_get_turns_while_thousands_come() -> None:
    newcomers = Newcomers(asyncio.get_running_loop())
    through: list[int] = []

    async def come(number: int) -> None:
        await newcomers.turn()
        through.append(number)

    tasks = [asyncio.create_task(come(number)) for number in range(100 * PER_TURN)]
    seen = []
    while len(through) < len(tasks):
        seen.append(len(through))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)

    assert through == sorted(through)
    assert max(later - now for now, later in itertools.pairwise(seen)) <= 2 * PER_TURN
    assert len(seen) >= 50


async def test_newcomer_that_went_away_takes_no_turn() -> None:
    newcomers = Newcomers(asyncio.get_running_loop())
    for _ in range(PER_TURN):
        await newcomers.turn()
    gone = [asyncio.create_task(newcomers.turn()) for _ in range(3 * PER_TURN)]
    stays = asyncio.create_task(newcomers.turn())
    await asyncio.sleep(0)

    for task in gone:
        task.cancel()
    await turns(3)

    assert stays.done()
    await asyncio.gather(*gone, return_exceptions=True)


async def test_newcomer_that_went_away_is_not_counted() -> None:
    newcomers = Newcomers(asyncio.get_running_loop())
    tasks = [asyncio.create_task(newcomers.turn()) for _ in range(3 * PER_TURN + 5)]
    await asyncio.sleep(0)
    before = newcomers.waiting

    for task in tasks[-5:]:
        task.cancel()
    await asyncio.sleep(0)  # a turn of others, too
    after = newcomers.waiting
    await asyncio.gather(*tasks, return_exceptions=True)

    assert (before, after, newcomers.waiting) == (2 * PER_TURN + 5, PER_TURN, 0)


async def test_nothing_is_due_once_all_are_through() -> None:
    loop = asyncio.get_running_loop()
    newcomers = Newcomers(loop)
    await asyncio.gather(*(newcomers.turn() for _ in range(3 * PER_TURN)))

    await turns(5)

    assert not newcomers._is_due


def _has_ended(coroutine: object) -> bool:
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return True
    return False
