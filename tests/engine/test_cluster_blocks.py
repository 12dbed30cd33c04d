"""The contract of `engine.nodes.Blocks`, for every engine that has a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from realtime.engine.nodes import MAX_BLOCKED, NO_LIST
from tests.engine.bench import Bench
from tests.engine.conftest import OpenRedisBench
from tests.engine.redis_bench import Pair
from tests.redis_server import RedisServer

USERS = ["17", "", "ä漢🎉", "a\r\nb\x00", "u" * 255]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds; works also while the loop's clock stands still."""
    deadline = time.monotonic() + 20
    while not await condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        await asyncio.sleep(0)


def later(seconds: float = 1000.0) -> float:
    return time.time() + seconds


async def test_nobody_is_blocked_at_first(clustered: Bench) -> None:
    assert await clustered.cluster.blocks.read() == (NO_LIST, {})
    assert await clustered.cluster.blocks.version() == NO_LIST


async def test_blocked_users_are_listed_with_their_ends(clustered: Bench) -> None:
    blocks = clustered.cluster.blocks
    ends = {user: later(1000 + number) for number, user in enumerate(USERS)}

    assert await blocks.add(ends) == len(USERS)

    version, listed = await blocks.read()
    assert listed == ends
    assert version == await blocks.version() != NO_LIST


async def test_last_end_counts_also_if_it_is_sooner(clustered: Bench) -> None:
    blocks, sooner = clustered.cluster.blocks, later(10)
    await blocks.add({"17": later()})

    assert await blocks.add({"17": sooner}) == 1

    assert (await blocks.read()).ends == {"17": sooner}


async def test_unblocked_user_is_gone_and_others_stay(clustered: Bench) -> None:
    blocks, ends = clustered.cluster.blocks, {"17": later(), "18": later()}
    await blocks.add(ends)

    await blocks.remove("17")
    await blocks.remove("nobody")

    assert (await blocks.read()).ends == {"18": ends["18"]}


async def test_every_change_has_another_version(clustered: Bench) -> None:
    blocks = clustered.cluster.blocks
    versions = []
    for number in range(3):
        await blocks.add({str(number): later()})
        versions.append(await blocks.version())
        await blocks.remove(str(number))
        versions.append(await blocks.version())

    assert len(set(versions)) == 6


async def test_block_ends_by_itself(clustered: Bench) -> None:
    blocks = clustered.cluster.blocks
    await blocks.add({"17": later(0.2), "18": later()})

    async def over() -> bool:
        return (await blocks.read()).ends.keys() == {"18"}

    await until(over)


async def test_so_many_are_blocked_and_no_more(clustered: Bench) -> None:
    blocks = clustered.cluster.blocks
    await blocks.add({str(number): later() for number in range(MAX_BLOCKED - 1)})
    await blocks.add({"past": later(0.2)})

    refused = await blocks.add({"17b": later()})
    other_end = await blocks.add({"5": later()})

    async def room() -> bool:
        return await blocks.add({"17b": later()}) == 1

    assert (refused, other_end) == (0, 1)
    await until(room)
    assert len((await blocks.read()).ends) == MAX_BLOCKED


async def test_two_engines_have_one_list(pair: Pair) -> None:
    end = later()
    await pair.one.cluster.blocks.add({"17": end})
    assert await pair.other.cluster.blocks.read() == await pair.one.cluster.blocks.read()

    await pair.other.cluster.blocks.remove("17")
    assert (await pair.one.cluster.blocks.read()).ends == {}


async def test_many_who_block_at_once_lose_nothing(pair: Pair) -> None:
    ends = {str(number): later() for number in range(50)}

    await asyncio.gather(
        *(
            pair[number % 2].cluster.blocks.add({user: end})
            for number, (user, end) in enumerate(ends.items())
        )
    )

    assert (await pair.one.cluster.blocks.read()).ends == ends


async def test_entries_expire_with_the_last_block(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench
) -> None:
    bench = await open_redis(servers=[server := own_redis()], prefix="p")
    await bench.cluster.blocks.add({"17": later(2000), "18": later(10)})
    await bench.cluster.blocks.remove("18")

    with server.client() as client:
        left = [client.pttl(key) for key in ("p:blocked", "p:blocked.expiry")]
        kept = client.pttl("p:blocked.version")

    assert all(1_900_000 < each <= 2_000_000 for each in left)
    assert kept == -1


async def test_entry_of_another_kind_hides_no_other(
    own_redis: Callable[..., RedisServer],
    open_redis: OpenRedisBench,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = await open_redis(servers=[server := own_redis()], prefix="p")
    await bench.cluster.blocks.add({"17": later()})
    with server.client() as client:
        client.hset("p:blocked", "strange", b"\x00")
        client.zadd("p:blocked.expiry", {"strange": later() * 1000})

    for _ in range(2):
        assert (await bench.cluster.blocks.read()).ends.keys() == {"17"}
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_version_grows_with_each_change_of_one_list(
    own_redis: Callable[..., RedisServer], open_redis: OpenRedisBench
) -> None:
    """Also on a server whose clock is behind that of the one before."""
    bench = await open_redis(servers=[server := own_redis()], prefix="p")
    blocks, ahead = bench.cluster.blocks, time.time_ns() // 1000 + 10**12
    with server.client() as client:
        client.set("p:blocked.version", f"5:{ahead}")

    await blocks.add({"17": later()})
    added = await blocks.version()
    await blocks.remove("17")

    assert (added, await blocks.version()) == ((5, ahead + 1), (5, ahead + 2))
