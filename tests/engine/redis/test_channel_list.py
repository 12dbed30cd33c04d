"""The channel list in Redis: right in the end, cheap, and gone with the node."""

from __future__ import annotations

import asyncio
import logging

import pytest

from realtime.engine.channel_list import MAX_FAILED, MAX_NAMES_PER_STEP, ChannelList
from realtime.errors import EngineUnavailable
from tests.engine.redis.channel_list_bench import ChannelListBench
from tests.unit.parts import eventually, turns


async def test_discarded_name_is_gone_soon(bench: ChannelListBench) -> None:
    await bench.channel_list.add("a")
    await bench.channel_list.add("b")
    assert bench.names() == {"a", "b"}
    bench.channel_list.discard("a")
    await eventually(lambda: bench.names() == {"b"})


async def test_discarding_an_unknown_name_costs_nothing(bench: ChannelListBench) -> None:
    bench.channel_list.discard("a")
    await turns()
    assert bench.wire.commands == []


async def test_many_names_added_together_are_written_in_one_command(
    bench: ChannelListBench,
) -> None:
    names = {f"n{number}" for number in range(MAX_NAMES_PER_STEP)}
    await asyncio.gather(*(bench.channel_list.add(name) for name in names))
    assert bench.names() == names
    assert bench.wire.commands.count("SADD") == 1


async def test_more_names_than_one_command_takes_are_all_written(bench: ChannelListBench) -> None:
    names = {f"n{number}" for number in range(2 * MAX_NAMES_PER_STEP + 1)}

    await asyncio.gather(*(bench.channel_list.add(name) for name in names))
    assert bench.names() == names
    assert sorted(bench.wire.reported) == sorted((name, True) for name in names)
    for name in names - {"n7"}:
        bench.channel_list.discard(name)

    await eventually(lambda: bench.names() == {"n7"})
    commands = bench.wire.commands
    assert (commands.count("SADD"), commands.count("SREM")) == (3, 2)


async def test_with_a_pause_only_what_follows_the_first_names_waits(
    bench: ChannelListBench,
) -> None:
    """A process that gets the processor for moments only has listed its users in the first one."""
    channel_list = ChannelList(pause=3600.0)
    channel_list.open(bench.wire, lambda first, last: None)

    async with asyncio.timeout(60):
        await asyncio.gather(channel_list.add("a"), channel_list.add("b"))
    later = channel_list.add("c")
    await turns()

    assert bench.names() == {"a", "b"}
    assert not later.done()
    await channel_list.close()


async def test_with_a_pause_a_name_that_comes_back_in_it_was_never_away(
    bench: ChannelListBench,
) -> None:
    channel_list = ChannelList(pause=0.5)
    channel_list.open(bench.wire, lambda first, last: None)
    await channel_list.add("a")

    channel_list.discard("a")
    await turns()
    await channel_list.add("a")

    assert bench.wire.reported == [("a", True)]
    await channel_list.close()


async def test_changes_made_while_one_batch_is_written_are_the_next_batch(
    bench: ChannelListBench,
) -> None:
    bench.wire.open.clear()
    first = bench.channel_list.add("first")
    await eventually(lambda: bool(bench.wire.commands))

    later = [bench.channel_list.add(f"n{number}") for number in range(50)]
    bench.channel_list.discard("first")
    assert not first.done()
    bench.wire.open.set()
    await asyncio.gather(first, *later)

    assert bench.names() == {f"n{number}" for number in range(50)}
    assert bench.wire.commands.count("SADD") == 2


async def test_name_added_and_discarded_before_it_was_written_is_neither_added_nor_reported(
    bench: ChannelListBench,
) -> None:
    added = bench.channel_list.add("a")
    bench.channel_list.discard("a")

    await added

    assert bench.names() == set()
    assert "SADD" not in bench.wire.commands
    assert bench.wire.reported == []


# life


async def test_lost_set_is_written_again_without_a_report(bench: ChannelListBench) -> None:
    for name in "abc":
        await bench.channel_list.add(name)
    bench.client.delete(bench.key)
    bench.wire.reported.clear()

    await bench.channel_list.renew()

    assert bench.names() == {"a", "b", "c"}
    assert bench.wire.reported == []


async def test_renewing_an_empty_list_writes_nothing(bench: ChannelListBench) -> None:
    await bench.channel_list.renew()
    assert bench.names() == set()
    assert not bench.client.exists(bench.key)


async def test_renewal_costs_the_same_however_many_names_there_are(bench: ChannelListBench) -> None:
    await asyncio.gather(*(bench.channel_list.add(f"n{number}") for number in range(500)))
    await bench.channel_list.renew()
    bench.wire.commands.clear()

    await bench.channel_list.renew()

    assert len(bench.wire.commands) <= 2
    assert set(bench.wire.commands).isdisjoint({"SADD", "SMEMBERS"})


# failures


async def test_future_completes_also_when_the_write_failed(
    bench: ChannelListBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "realtime.engine")
    bench.wire.broken = True
    async with asyncio.timeout(60):
        await bench.channel_list.add("a")
    assert "the wire is broken" in caplog.text


async def test_writes_that_fail_one_after_another_are_logged_once(
    bench: ChannelListBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "realtime.engine")
    for name in ("a", "b"):
        bench.wire.broken = True
        for number in range(3):
            await bench.channel_list.add(f"{name}{number}")
        bench.wire.broken = False
        await bench.channel_list.add(name)

    assert [record.getMessage() for record in caplog.records] == [
        "The channel list could not be written: the wire is broken"
    ] * 2


async def test_changes_that_failed_are_written_and_reported_at_the_next_renewal(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("stays")
    await bench.channel_list.add("goes")
    bench.wire.broken = True
    await bench.channel_list.add("comes")
    bench.channel_list.discard("goes")
    await eventually(lambda: "SREM" in bench.wire.commands)
    await turns()
    bench.wire.broken = False
    assert bench.wire.reported == [("stays", True), ("goes", True)]

    await bench.channel_list.renew()

    assert bench.names() == {"stays", "comes"}
    assert sorted(bench.wire.reported[2:]) == [("comes", True), ("goes", False)]


async def test_change_that_failed_is_written_in_its_latest_state(bench: ChannelListBench) -> None:
    bench.wire.broken = True
    await bench.channel_list.add("a")
    bench.wire.broken = False
    bench.channel_list.discard("a")

    await bench.channel_list.renew()

    assert (bench.names(), bench.wire.reported) == (set(), [])


async def test_name_discarded_and_added_at_once_is_not_reported(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("a")
    bench.channel_list.discard("a")
    await bench.channel_list.add("a")
    assert bench.wire.reported == [("a", True)]


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

    await bench.channel_list.renew()

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

    await bench.channel_list.renew()

    assert sorted(bench.wire.reported) == sorted((name, True) for name in names)


async def test_memory_of_names_that_could_not_be_written_is_bounded(
    bench: ChannelListBench,
) -> None:
    """Clients choose the names, and writes that failed may have taken effect."""
    await bench.channel_list.add("stays")
    bench.wire.broken = True
    names = [f"n{number}" for number in range(MAX_FAILED + 2)]
    added = [bench.channel_list.add(name) for name in names]
    for name in names:
        bench.channel_list.discard(name)
    await asyncio.gather(*added)
    bench.client.sadd(bench.key, names[0])
    bench.wire.broken = False
    bench.wire.commands.clear()

    await bench.channel_list.renew()

    assert bench.names() == {"stays"}
    assert len(bench.wire.commands) < 10
    assert bench.wire.reported == [("stays", True)]


@pytest.mark.parametrize("names", [{"a", "b"}, set()], ids=["names", "no names"])
async def test_name_that_a_late_command_added_is_removed_again(
    bench: ChannelListBench, names: set[str]
) -> None:
    """A system may send a command again after a later one was run on another connection."""
    for name in names:
        await bench.channel_list.add(name)
    bench.client.sadd(bench.key, "late")

    for _ in range(2):
        await bench.channel_list.renew()

    assert bench.names() == names
    assert sorted(bench.wire.reported) == [(name, True) for name in sorted(names)]


async def test_names_that_an_older_copy_of_the_set_has_instead_are_corrected_after_a_doubt(
    bench: ChannelListBench,
) -> None:
    """As many names are missing as there are others: the size tells nothing."""
    for name in ("stays", "lost"):
        await bench.channel_list.add(name)
    bench.client.srem(bench.key, "lost")
    bench.client.sadd(bench.key, "long gone")
    bench.wire.reported.clear()

    bench.channel_list.doubt()
    await bench.channel_list.renew()

    assert bench.names() == {"stays", "lost"}
    assert bench.wire.reported == []


async def test_names_are_compared_once_after_a_doubt_and_again_where_that_failed(
    bench: ChannelListBench,
) -> None:
    await bench.channel_list.add("a")
    bench.channel_list.doubt()
    bench.wire.breaks_after = 0
    with pytest.raises(EngineUnavailable):
        await bench.channel_list.renew()
    bench.wire.breaks_after, bench.wire.broken = None, False

    for _ in range(2):
        await bench.channel_list.renew()

    assert bench.wire.commands.count("SSCAN") == 2


async def test_renewal_that_fails_raises(bench: ChannelListBench) -> None:
    await bench.channel_list.add("a")
    bench.wire.broken = True
    with pytest.raises(EngineUnavailable):
        await bench.channel_list.renew()


# the end


async def test_nothing_is_written_after_the_end(bench: ChannelListBench) -> None:
    await bench.channel_list.add("a")
    await bench.channel_list.close()
    bench.wire.commands.clear()

    bench.channel_list.discard("a")
    bench.channel_list.add("b")
    await turns()

    assert bench.wire.commands == []
    assert bench.names() == {"a"}


@pytest.mark.parametrize("under_way", [False, True], ids=["at once", "while one is written"])
async def test_futures_complete_at_the_end(bench: ChannelListBench, under_way: bool) -> None:
    bench.wire.open.clear()
    waiting = [bench.channel_list.add("a")]
    if under_way:
        await eventually(lambda: bool(bench.wire.commands))
    waiting.append(bench.channel_list.add("b"))

    await bench.channel_list.close()

    done, pending = await asyncio.wait(waiting, timeout=20)
    assert (len(done), len(pending)) == (len(set(waiting)), 0)


async def test_changes_are_written_at_the_end(bench: ChannelListBench) -> None:
    await bench.channel_list.add("goes")
    bench.channel_list.discard("goes")
    bench.channel_list.add("comes")

    await bench.channel_list.finish()

    assert bench.names() == {"comes"}
    assert sorted(bench.wire.reported[1:]) == [("comes", True), ("goes", False)]
