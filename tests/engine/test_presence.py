"""The contract of `engine.base.Presence`, for every engine."""

from __future__ import annotations

import asyncio

from realtime.protocol.messages import ClientInfo
from tests.engine.bench import Bench
from tests.unit.parts import data

FIRST = ClientInfo("17", "C1", data('{ "a": 1.0 }'), data("2"))
SECOND = ClientInfo("18", "C2")


async def test_several_clients_may_be_added_at_once(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [FIRST, SECOND], 60)
    assert dict(await engine.presence.get(unique)) == {"C1": FIRST, "C2": SECOND}


async def test_adding_no_client_does_no_harm(engine: Bench, unique: str) -> None:
    assert dict(await engine.presence.get(unique)) == {}
    await engine.presence.add(unique, [], 60)
    assert dict(await engine.presence.get(unique)) == {}


async def test_presence_is_kept_by_channel(engine: Bench, unique: str) -> None:
    await engine.presence.add(f"{unique}-a", [FIRST], 60)
    await engine.presence.add(f"{unique}-b", [SECOND], 60)
    assert set(await engine.presence.get(f"{unique}-a")) == {"C1"}
    assert set(await engine.presence.get(f"{unique}-b")) == {"C2"}


async def test_client_that_was_removed_is_gone(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [FIRST, SECOND], 60)
    await engine.presence.remove(unique, "C1")
    for channel, client in ((unique, "nobody"), (f"{unique}-unknown", "C1")):
        await engine.presence.remove(channel, client)
    assert set(await engine.presence.get(unique)) == {"C2"}
    assert dict(await engine.presence.get(f"{unique}-unknown")) == {}


async def test_presence_that_is_not_refreshed_expires_and_may_come_back(
    engine: Bench, unique: str
) -> None:
    await engine.presence.add(unique, [FIRST], 100)

    await engine.elapse(90)
    assert set(await engine.presence.get(unique)) == {"C1"}
    await engine.elapse(111)
    assert dict(await engine.presence.get(unique)) == {}
    await engine.presence.add(unique, [FIRST], 100)
    assert set(await engine.presence.get(unique)) == {"C1"}


async def test_presence_that_is_refreshed_stays(engine: Bench, unique: str) -> None:
    for _ in range(3):
        await engine.presence.add(unique, [FIRST], 100)
        await engine.elapse(90)
    assert set(await engine.presence.get(unique)) == {"C1"}


async def test_each_client_expires_by_itself(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [FIRST], 100)
    await engine.elapse(50)
    await engine.presence.add(unique, [SECOND], 100)
    await engine.elapse(60)
    assert set(await engine.presence.get(unique)) == {"C2"}


async def test_client_with_a_short_lifetime_expires_beside_one_with_a_long(
    engine: Bench, unique: str
) -> None:
    await engine.presence.add(unique, [FIRST], 600)
    await engine.presence.add(unique, [SECOND], 100)
    await engine.elapse(111)
    assert set(await engine.presence.get(unique)) == {"C1"}


async def test_refresh_updates_the_info(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [ClientInfo("17", "C1", data("1"))], 60)
    await engine.presence.add(unique, [ClientInfo("17", "C1", data("2"))], 60)
    assert (await engine.presence.get(unique))["C1"].conn_info == data("2")


async def test_presence_read_before_is_not_changed_afterwards(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [FIRST], 60)
    before = await engine.presence.get(unique)
    await engine.presence.remove(unique, "C1")
    assert set(before) == {"C1"}


async def test_concurrent_changes_of_presence_are_all_made(engine: Bench, unique: str) -> None:
    await engine.presence.add(unique, [FIRST], 60)

    await asyncio.gather(
        engine.presence.remove(unique, "C1"),
        *(
            engine.presence.add(unique, [ClientInfo("17", f"D{number}")], 60)
            for number in range(20)
        ),
    )

    assert set(await engine.presence.get(unique)) == {f"D{number}" for number in range(20)}
