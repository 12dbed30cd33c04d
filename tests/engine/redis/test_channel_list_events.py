"""The channel list in Redis: every change is reported, and reported once."""

from __future__ import annotations

import asyncio

from realtime.engine.redis.channel_list import MAX_NAMES_PER_STEP
from tests.engine.redis.channel_list_bench import ChannelListBench
from tests.unit.parts import eventually, turns

LIFETIME = 60.0


async def test_added_and_removed_names_are_reported_in_order(bench: ChannelListBench) -> None:
    await bench.channel_list.add("a")
    bench.channel_list.discard("a")
    await eventually(lambda: bench.names() == set())
    await bench.channel_list.add("a")

    assert bench.wire.reported == [("a", True), ("a", False), ("a", True)]


async def test_each_of_many_names_is_reported_once(
    bench: ChannelListBench,
) -> None:
    names = {f"n{number}" for number in range(2 * MAX_NAMES_PER_STEP + 1)}

    await asyncio.gather(*(bench.channel_list.add(name) for name in names))

    assert sorted(bench.wire.reported) == sorted((name, True) for name in names)


async def test_name_added_and_discarded_at_once_is_not_reported(
    bench: ChannelListBench,
) -> None:
    added = bench.channel_list.add("a")
    bench.channel_list.discard("a")
    await added

    assert bench.wire.reported == []


async def test_name_discarded_and_added_at_once_is_not_reported(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("a")

    bench.channel_list.discard("a")
    await bench.channel_list.add("a")

    assert bench.wire.reported == [("a", True)]


async def test_name_added_twice_is_reported_once(bench: ChannelListBench) -> None:
    await bench.channel_list.add("a")
    await bench.channel_list.add("a")

    assert bench.wire.reported == [("a", True)]


async def test_nothing_is_reported_when_a_lost_set_is_written_again(
    bench: ChannelListBench,
) -> None:
    for name in "abc":
        await bench.channel_list.add(name)
    bench.client.delete(bench.key)
    bench.wire.reported.clear()

    await bench.channel_list.renew(LIFETIME)

    assert bench.names() == {"a", "b", "c"}
    assert bench.wire.reported == []


async def test_name_discarded_after_the_set_was_lost_is_reported(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("a")
    bench.client.delete(bench.key)

    bench.channel_list.discard("a")

    await eventually(lambda: bench.wire.reported == [("a", True), ("a", False)])


async def test_change_that_failed_is_reported_when_it_is_written(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("goes")
    bench.wire.broken = True
    await bench.channel_list.add("comes")
    bench.channel_list.discard("goes")
    await eventually(lambda: "SREM" in bench.wire.commands)
    await turns()
    assert bench.wire.reported == [("goes", True)]
    bench.wire.broken = False

    await bench.channel_list.renew(LIFETIME)

    assert sorted(bench.wire.reported[1:]) == [("comes", True), ("goes", False)]


async def test_change_that_failed_and_was_undone_is_not_reported(
    bench: ChannelListBench,
) -> None:
    bench.wire.broken = True
    await bench.channel_list.add("a")
    bench.wire.broken = False
    bench.channel_list.discard("a")

    await bench.channel_list.renew(LIFETIME)

    assert bench.wire.reported == []


async def test_change_that_is_undone_while_it_fails_is_not_reported(
    bench: ChannelListBench,
) -> None:
    bench.wire.open.clear()
    added = bench.channel_list.add("a")
    await eventually(lambda: "SADD" in bench.wire.commands)
    bench.channel_list.discard("a")
    bench.wire.breaks_after = 0
    bench.wire.open.set()
    await added
    bench.wire.breaks_after, bench.wire.broken = None, False

    await bench.channel_list.renew(LIFETIME)

    assert bench.names() == set()
    assert bench.wire.reported == []


async def test_part_that_was_written_before_a_failure_is_reported_once(
    bench: ChannelListBench,
) -> None:
    bench.wire.breaks_after = 1
    names = {f"n{number}" for number in range(MAX_NAMES_PER_STEP + 1)}
    await asyncio.gather(*(bench.channel_list.add(name) for name in names))
    assert len(bench.wire.reported) == MAX_NAMES_PER_STEP
    bench.wire.breaks_after, bench.wire.broken = None, False

    await bench.channel_list.renew(LIFETIME)

    assert sorted(bench.wire.reported) == sorted((name, True) for name in names)
