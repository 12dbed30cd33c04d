"""Presence in Redis: expires on the millisecond, and nothing stays."""

from __future__ import annotations

import pytest

from realtime.engine.redis.shards import MAX_ENTRIES_PER_STEP
from realtime.protocol.messages import ClientInfo
from tests.engine.bench import comes_true
from tests.engine.redis_bench import RedisBench
from tests.unit.parts import data

FIRST = ClientInfo("17", "C1", data("1"))
SECOND = ClientInfo("18", "C2")


async def test_expiry_is_kept_in_milliseconds_of_redis(engine: RedisBench, unique: str) -> None:
    _, expiry = engine.keys.presence(unique)
    with engine.client() as client:
        seconds, microseconds = client.time()
        before = seconds * 1000 + microseconds // 1000

        await engine.presence.add(unique, [FIRST], 12.345)

        seconds, microseconds = client.time()
        after = seconds * 1000 + microseconds // 1000
        assert before + 12_345 <= client.zscore(expiry, "C1") <= after + 12_345


async def test_keys_live_as_long_as_the_last_of_their_entries(
    engine: RedisBench, unique: str
) -> None:
    await engine.presence.add(unique, [FIRST], 12.345)
    with engine.client() as client:
        for key in engine.keys.presence(unique):
            assert 2_345 < client.pttl(key) <= 12_345
        await engine.presence.add(unique, [FIRST], 100)
        await engine.presence.add(unique, [SECOND], 10)
        for key in engine.keys.presence(unique):
            assert 90_000 < client.pttl(key) <= 100_000


async def test_expired_clients_leave_nothing_also_if_presence_is_not_read(
    engine: RedisBench, unique: str
) -> None:
    before = engine.stored_keys()
    await engine.presence.add(unique, [FIRST, SECOND], 0.2)
    assert engine.stored_keys() - before == set(engine.keys.presence(unique))

    async def nothing_stays() -> bool:
        return engine.stored_keys() == before

    await comes_true(nothing_stays)


async def test_entries_that_expired_are_dropped_beside_those_that_stay(
    engine: RedisBench, unique: str
) -> None:
    await engine.presence.add(unique, [SECOND], 100)
    await engine.presence.add(unique, [FIRST], 0.1)

    async def only_second() -> bool:
        return set(await engine.presence.get(unique)) == {"C2"}

    await comes_true(only_second)
    entries, expiry = engine.keys.presence(unique)
    with engine.client() as client:
        assert client.hkeys(entries) == [b"C2"]
        assert client.zrange(expiry, 0, -1) == [b"C2"]


@pytest.mark.parametrize("number", [0, 1, 3])
async def test_removed_clients_leave_nothing(engine: RedisBench, unique: str, number: int) -> None:
    before = engine.stored_keys()
    clients = [ClientInfo("17", f"C{index}") for index in range(number)]
    await engine.presence.add(unique, clients, 100)

    for info in clients:
        await engine.presence.remove(unique, info.client)

    assert engine.stored_keys() == before


@pytest.mark.parametrize("number", [MAX_ENTRIES_PER_STEP, MAX_ENTRIES_PER_STEP + 1, 1000])
async def test_more_clients_than_one_step_takes_are_all_present(
    engine: RedisBench, unique: str, number: int
) -> None:
    clients = [ClientInfo("17", f"C{index}", data(str(index))) for index in range(number)]
    await engine.presence.add(unique, clients, 100)
    assert dict(await engine.presence.get(unique)) == {info.client: info for info in clients}
