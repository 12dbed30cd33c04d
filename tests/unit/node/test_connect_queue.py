"""Connect queue: clients that connect go on in turns, and others get the loop in between."""

from __future__ import annotations

import asyncio
import itertools

from realtime.node.limits.connect_queue import PER_TURN, ConnectQueue
from tests.unit.parts import turns


async def test_queue_go_on_at_once_while_there_are_few() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    for _ in range(5):
        # a coroutine that never waits ends at its first step
        waiting = [queue.turn() for _ in range(PER_TURN)]
        assert [_has_ended(each) for each in waiting] == [True] * PER_TURN
        await turns(1)


async def test_others_get_turns_while_thousands_come() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    through: list[int] = []

    async def come(number: int) -> None:
        await queue.turn()
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
    queue = ConnectQueue(asyncio.get_running_loop())
    for _ in range(PER_TURN):
        await queue.turn()
    gone = [asyncio.create_task(queue.turn()) for _ in range(3 * PER_TURN)]
    stays = asyncio.create_task(queue.turn())
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await turns(3)
    assert stays.done()
    await asyncio.gather(*gone, return_exceptions=True)


async def test_newcomer_that_went_away_is_not_counted() -> None:
    queue = ConnectQueue(asyncio.get_running_loop())
    tasks = [asyncio.create_task(queue.turn()) for _ in range(3 * PER_TURN + 5)]
    await asyncio.sleep(0)
    before = queue.waiting
    for task in tasks[-5:]:
        task.cancel()
    await asyncio.sleep(0)  # a turn of others, too
    after = queue.waiting
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (before, after, queue.waiting) == (2 * PER_TURN + 5, PER_TURN, 0)


async def test_nothing_is_due_once_all_are_through() -> None:
    loop = asyncio.get_running_loop()
    queue = ConnectQueue(loop)
    await asyncio.gather(*(queue.turn() for _ in range(3 * PER_TURN)))
    await turns(5)
    assert not queue._is_due


def _has_ended(coroutine: object) -> bool:
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return True
    return False
