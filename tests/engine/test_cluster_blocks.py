"""The blocked users of `engine.limits.SharedLimits`, for every engine that has these."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest

from realtime.engine.limits import MAX_BLOCKED, NO_LIST
from tests.engine.bench import Bench, Pair
from tests.engine.redis_bench import RedisBench

USERS = ["17", "", "ä漢🎉", "a\r\nb\x00", "u" * 255]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds; works also while the loop's clock stands still."""
    deadline = time.monotonic() + 20
    while not await condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0)
        time.sleep(0.02)


def later(seconds: float = 1000.0) -> float:
    return time.time() + seconds


async def blocked(bench: Bench) -> Mapping[str, float]:
    listed = await bench.limits.blocked()
    assert listed is not None
    return listed.ends


async def test_blocked_users_are_listed_with_their_ends(clustered: Bench) -> None:
    limits = clustered.limits
    ends = {user: later(1000 + number) for number, user in enumerate(USERS)}
    assert await limits.blocked() == (NO_LIST, {})
    assert await limits.blocked(NO_LIST) is None

    number, version = await limits.block(ends)

    assert number == len(USERS)
    assert version != NO_LIST
    assert await limits.blocked(NO_LIST) == (version, ends)
    assert await limits.blocked(version) is None


async def test_last_end_counts_and_an_unblocked_user_is_gone(clustered: Bench) -> None:
    limits, sooner, later_end = clustered.limits, later(10), later()
    await limits.block({"17": later(), "18": later_end})
    assert (await limits.block({"17": sooner})).number == 1
    assert await blocked(clustered) == {"17": sooner, "18": later_end}

    assert (await limits.block({"17": 0, "nobody": 0})).number == 0

    assert await blocked(clustered) == {"18": later_end}


async def test_every_change_has_another_version(clustered: Bench) -> None:
    limits = clustered.limits
    versions = []
    for number in range(3):
        versions += [(await limits.block({str(number): end})).version for end in (later(), 0)]
    assert len(set(versions)) == 6


async def test_block_ends_by_itself(clustered: Bench) -> None:
    limits = clustered.limits
    await limits.block({"17": later(0.2), "18": later()})

    async def over() -> bool:
        return (await blocked(clustered)).keys() == {"18"}

    await until(over)


async def test_so_many_are_blocked_and_no_more(clustered: Bench) -> None:
    limits = clustered.limits
    await limits.block({str(number): later() for number in range(MAX_BLOCKED - 1)})
    await limits.block({"past": later(1.0)})

    refused = (await limits.block({"17b": later()})).number
    other_end = (await limits.block({"5": later()})).number

    async def room() -> bool:
        return (await limits.block({"17b": later()})).number == 1

    assert (refused, other_end) == (0, 1)
    await until(room)
    assert len(await blocked(clustered)) == MAX_BLOCKED


async def test_two_engines_have_one_list(pair: Pair) -> None:
    end = later()
    await pair.one.limits.block({"17": end})
    assert await pair.other.limits.blocked() == await pair.one.limits.blocked()
    await pair.other.limits.block({"17": 0})
    assert await blocked(pair.one) == {}


async def test_many_who_block_at_once_lose_nothing(pair: Pair) -> None:
    ends = {str(number): later() for number in range(50)}

    await asyncio.gather(
        *(
            pair[number % 2].limits.block({user: end})
            for number, (user, end) in enumerate(ends.items())
        )
    )

    assert await blocked(pair.one) == ends


async def test_entries_expire_with_the_last_block(own: RedisBench) -> None:
    await own.limits.block({"17": later(2000), "18": later(10)})
    await own.limits.block({"18": 0})

    with own.client() as client:
        left = [client.pttl(key) for key in ("p:blocked", "p:blocked.expiry")]
        kept = client.pttl("p:blocked.version")

    assert all(1_900_000 < each <= 2_000_000 for each in left)
    assert kept == -1


async def test_entry_of_another_kind_hides_no_other(
    own: RedisBench, caplog: pytest.LogCaptureFixture
) -> None:
    await own.limits.block({"17": later()})
    with own.client() as client:
        client.hset("p:blocked", "strange", b"\x00")
        client.zadd("p:blocked.expiry", {"strange": later() * 1000})

    for _ in range(2):
        assert (await blocked(own)).keys() == {"17"}
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_version_grows_with_each_change_of_one_list(own: RedisBench) -> None:
    """Also on a server whose clock is behind that of the one before."""
    limits, ahead = own.limits, time.time_ns() // 1000 + 10**12
    with own.client() as client:
        client.set("p:blocked.version", f"5:{ahead}")
    versions = [(await limits.block({"17": end})).version for end in (later(), 0)]
    assert versions == [(5, ahead + 1), (5, ahead + 2)]
